#include "libcore/parallel/stage_table.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

ParallelConfig pipeline_of(int ranks) {
  ParallelConfig config;
  config.pipeline = ranks;
  return config;
}

std::vector<LayerRange> depth_of(const StageTable& table) {
  std::vector<LayerRange> parts;
  for (int chunk = 0; chunk < table.chunks(); ++chunk)
    for (int rank = 0; rank < table.ranks(); ++rank) parts.push_back(table.range(rank, chunk));
  return parts;
}

std::string refusal(int layers, const ParallelConfig& config) {
  try {
    StageTable(layers, config);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    return error.what();
  }
  return {};
}

TEST(StageTable, SplitsEvenlyWithoutAList) {
  EXPECT_EQ(depth_of(StageTable(12, pipeline_of(1))), (std::vector<LayerRange>{{0, 12}}));
  EXPECT_EQ(depth_of(StageTable(12, pipeline_of(3))), (std::vector<LayerRange>{{0, 4}, {4, 4}, {8, 4}}));
}

// Megatron's example of --num-layers-per-virtual-pipeline-stage: 8 layers, 2 ranks, chunks of 2 layers: rank
// 0 has [0, 1] and [4, 5], rank 1 has [2, 3] and [6, 7].
TEST(StageTable, DealsChunksOutInTurn) {
  ParallelConfig config = pipeline_of(2);
  config.layers_per_chunk = 2;
  const StageTable table(8, config);
  EXPECT_EQ(table.chunks(), 2);
  EXPECT_EQ(config.chunks(8), 2);
  EXPECT_EQ(table.range(0, 0), (LayerRange{0, 2}));
  EXPECT_EQ(table.range(0, 1), (LayerRange{4, 2}));
  EXPECT_EQ(table.range(1, 0), (LayerRange{2, 2}));
  EXPECT_EQ(table.range(1, 1), (LayerRange{6, 2}));
}

TEST(StageTable, TakesTheFirstAndTheLastRanksLayers) {
  ParallelConfig config = pipeline_of(4);
  config.first_layers = 10;
  config.last_layers = 6;
  EXPECT_EQ(depth_of(StageTable(40, config)),
            (std::vector<LayerRange>{{0, 10}, {10, 12}, {22, 12}, {34, 6}}));
  config.last_layers = {};
  EXPECT_EQ(depth_of(StageTable(40, config)),
            (std::vector<LayerRange>{{0, 10}, {10, 10}, {20, 10}, {30, 10}}));
  config.first_layers = {};
  config.last_layers = 1;
  EXPECT_EQ(depth_of(StageTable(7, config)), (std::vector<LayerRange>{{0, 2}, {2, 2}, {4, 2}, {6, 1}}));
}

TEST(StageTable, TakesBothEndsOfTwoRanksWhenTheyAddUp) {
  ParallelConfig config = pipeline_of(2);
  config.first_layers = 7;
  config.last_layers = 5;
  EXPECT_EQ(depth_of(StageTable(12, config)), (std::vector<LayerRange>{{0, 7}, {7, 5}}));
  EXPECT_EQ(refusal(13, config),
            "--decoder-first-pipeline-num-layers 7 and --decoder-last-pipeline-num-layers 5 add up to 12 "
            "layers, not to --num-layers 13; leave one of them out");
  config.last_layers = {};
  EXPECT_EQ(depth_of(StageTable(12, config)), (std::vector<LayerRange>{{0, 7}, {7, 5}}));
}

TEST(StageTable, TakesAList) {
  ParallelConfig config = pipeline_of(4);
  config.pipeline_layers = {"10,12,12,10"};
  EXPECT_EQ(depth_of(StageTable(44, config)),
            (std::vector<LayerRange>{{0, 10}, {10, 12}, {22, 12}, {34, 10}}));
  config = pipeline_of(2);
  config.pipeline_layers = {"1,", "2,3,1"};  // the option was given with a blank after a comma
  EXPECT_NE(refusal(7, config), "");
  config.pipeline_layers = {"1,2", "3,1"};
  const StageTable table(7, config);  // interleaved: two parts for each rank
  EXPECT_EQ(table.chunks(), 2);
  EXPECT_EQ(config.chunks(7), 2);
  EXPECT_EQ(table.range(0, 1), (LayerRange{3, 3}));
  EXPECT_EQ(table.range(1, 1), (LayerRange{6, 1}));
}

TEST(StageTable, RefusesWhatCannotBeSplit) {
  EXPECT_EQ(
      refusal(10, pipeline_of(4)),
      "--num-layers 10 is not a multiple of --pipeline-model-parallel-size 4; nearest that work: 8, 12; "
      "or give --pipeline-layers");
  ParallelConfig config = pipeline_of(4);
  config.first_layers = 3;
  EXPECT_EQ(refusal(10, config),
            "--decoder-first-pipeline-num-layers 3 of --num-layers 10: 7 layers are left for the 3 other "
            "pipeline ranks, not a multiple of 3; nearest that work: 6, 9");
  EXPECT_NE(refusal(3, config), "");  // no layers are left for the other ranks
  EXPECT_NE(refusal(5, config), "");  // two layers are left for three ranks
  EXPECT_EQ(refusal(6, config), "");
  config.layers_per_chunk = 1;
  EXPECT_NE(refusal(6, config).find("give --pipeline-layers"), std::string::npos);
  config.layers_per_chunk = {};
  config.pipeline = 1;
  EXPECT_EQ(refusal(6, config),
            "--decoder-first-pipeline-num-layers 3 needs --pipeline-model-parallel-size > 1");
}

TEST(StageTable, SaysEverythingThatIsWrongWithAList) {
  ParallelConfig config = pipeline_of(4);
  config.pipeline_layers = {"3,4,3"};
  config.last_layers = 3;
  EXPECT_EQ(
      refusal(12, config),
      "--pipeline-layers 3,4,3 and --decoder-last-pipeline-num-layers contradict each other; give one of "
      "them\n  --pipeline-layers 3,4,3 has 3 parts, not a multiple of --pipeline-model-parallel-size 4; "
      "nearest that work: 4\n  --pipeline-layers 3,4,3 adds up to 10 layers, not to --num-layers 12; give "
      "the parts 2 more");
  config = pipeline_of(2);
  for (const char* bad : {"3,,3", "6,0", "6,x", "7,-1", "3,2147483648", ""}) {
    config.pipeline_layers = {bad};
    EXPECT_NE(refusal(6, config).find("is not a number of layers"), std::string::npos) << bad;
  }
  config.pipeline_layers = {"4,4"};
  EXPECT_NE(refusal(6, config).find("take from the parts 2"), std::string::npos);
  config = pipeline_of(1);
  config.pipeline_layers = {"3,3"};
  EXPECT_EQ(refusal(6, config), "--pipeline-layers 3,3 needs --pipeline-model-parallel-size > 1");
}

}  // namespace
}  // namespace megalith
