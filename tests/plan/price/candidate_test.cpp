#include "libcore/plan/price/candidate.h"

#include <gtest/gtest.h>

#include "tests/plan/problems.h"

namespace megalith {
namespace {

using test::gpt_22b;
using test::mixtral;

TEST(StageLayers, WithoutExpertsAreCountedWhereTheyLie) {
  PlanProblem p = mixtral(64);
  p.model.layer_freq = "[0]*3+[1]*29";
  p.model.finish();
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 16}, 0), 2);
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 16}, 1), 1);
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 16}, 2), 0);
  // Two chunks of two layers: the first stage has layers 0, 1, 16 and 17.
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 8, .chunks = 2}, 0), 2);
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 8, .chunks = 2}, 1), 1);
  // DeepSeek-V3's 61 layers in 16 parts: 15 of 4 layers, the last of 1. All three dense layers are in the
  // first part.
  p.model.layers = 61;
  p.model.layer_freq = "([0]*3+[1]*58)";
  p.model.finish();
  p.stage_layers = {32, 29};
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 2, .chunks = 8}, 0), 3);
  EXPECT_EQ(stage_plain_layers(p, {.pipeline = 2, .chunks = 8}, 1), 0);
  p.stage_layers.clear();
  p.model.layers = 32;
  p.model.layer_freq = "2";  // layers with odd numbers are dense
  p.model.finish();
  for (int stage = 0; stage < 8; ++stage)
    EXPECT_EQ(stage_plain_layers(p, {.pipeline = 8, .chunks = 2}, stage), 2) << stage;
}

TEST(StageLayers, AreSpreadBeforeTheLastStage) {
  PlanProblem p = gpt_22b(64);
  p.model.layers = 50;
  const Candidate c{.pipeline = 8};
  std::vector<int> layers;
  for (int stage = 0; stage < 8; ++stage) layers.push_back(stage_layers(p, c, stage));
  EXPECT_EQ(layers, (std::vector<int>{6, 6, 6, 6, 6, 7, 7, 6}));
  const Candidate ends{.pipeline = 8, .first_layers = 5, .last_layers = 4};
  EXPECT_EQ(stage_layers(p, ends, 0), 5);
  EXPECT_EQ(stage_layers(p, ends, 7), 4);
  int sum = 0;
  for (int stage = 0; stage < 8; ++stage) sum += stage_layers(p, ends, stage);
  EXPECT_EQ(sum, 50);
}

// Against a sum over the stages before.
TEST(Candidate, CountsThePlainLayersOfEveryStage) {
  PlanProblem p = test::mixtral(64);
  p.model.layer_freq = "3";
  p.model.layers = 29;
  p.model.finish();
  for (const int pipeline : {1, 2, 4, 7, 29})
    for (const int first : {0, 1})
      for (const int last : {0, 1}) {
        if (pipeline < 4 && first + last > 0) continue;
        const Candidate c{.pipeline = pipeline, .first_layers = first, .last_layers = last};
        for (int stage = 0, begin = 0; stage < pipeline; ++stage) {
          const int end = begin + stage_layers(p, c, stage);
          EXPECT_EQ(stage_plain_layers(p, c, stage), p.model.plain_layers(begin, end))
              << pipeline << ' ' << first << ' ' << last << ' ' << stage;
          begin = end;
        }
      }
}

}  // namespace
}  // namespace megalith
