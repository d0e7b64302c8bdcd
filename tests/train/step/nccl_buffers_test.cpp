#include "libcore/train/step/nccl_buffers.h"

#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/train/step/memory.h"
#include "tests/support/environment.h"
#include "tests/train/run/tiny_run.h"

namespace megalith {
namespace {

using test::Variable;

constexpr size_t kMiB = size_t{1} << 20;

ParallelConfig sizes(int pipeline, int data) {
  ParallelConfig parallel;
  parallel.pipeline = pipeline;
  parallel.data = data;
  parallel.world = pipeline * data;
  return parallel;
}

// By hand: a connection's end takes whole blocks of 2 MiB. The sending one has a head; the receiving one has
// buffers of 0.5, 4.6875 and 4 MiB: 10 MiB in all. There are 32 channels.
TEST(NcclBytes, AreThoseOfTheConnectionsOfEachCommunicator) {
  EXPECT_EQ(nccl_bytes(sizes(1, 1), {}, {}), 0U);
  EXPECT_EQ(nccl_bytes(sizes(1, 2), {}, {}), 32 * 12 * kMiB);
  EXPECT_EQ(nccl_bytes(sizes(1, 8), {}, {}), 32 * 12 * kMiB);
  // The groups of all ranks and of both ends; a link that sends and one that receives. In the middle two of
  // each.
  EXPECT_EQ(nccl_bytes(sizes(4, 1), {.pipeline = 0}, {}), 32 * (2 * 12 + 2 + 10) * kMiB);
  EXPECT_EQ(nccl_bytes(sizes(4, 1), {.pipeline = 1}, {}), 32 * (12 + 2 * 2 + 2 * 10) * kMiB);
  // In rank order each rank also sends messages to each of the seven others.
  ParallelConfig ordered = sizes(1, 8);
  ordered.rank_order = true;
  EXPECT_EQ(nccl_bytes(ordered, {}, {}), 32 * 8 * 12 * kMiB);
}

TEST(NcclBytes, FollowTheVariablesOfNccl) {
  const auto bytes = [] { return nccl_bytes(sizes(1, 2), {}, nccl_sizes_here()); };
  const size_t all = bytes();
  {
    const Variable most("NCCL_MAX_NCHANNELS", "8");
    EXPECT_EQ(bytes(), all / 4);
    const Variable ctas("NCCL_MAX_CTAS", "2");
    EXPECT_EQ(bytes(), all / 16);
    const Variable least("NCCL_MIN_NCHANNELS", "4");
    EXPECT_EQ(bytes(), all / 8);
  }
  {
    const Variable least("NCCL_MIN_CTAS", "100");
    EXPECT_EQ(bytes(), 2 * all) << "there are 64 at most";
  }
  {
    const Variable simple("NCCL_BUFFSIZE", "8388608"), other("NCCL_LL128_BUFFSIZE", "none");
    EXPECT_EQ(bytes(), 32 * (2 + 14) * kMiB);
  }
  const Variable ll("NCCL_LL_BUFFSIZE", "2097152"), ll128("NCCL_LL128_BUFFSIZE", "1048576");
  EXPECT_EQ(bytes(), 32 * (2 + 8) * kMiB);
}

TEST(NcclBytes, KnowWhetherNcclMixesGraphsAndOtherCalls) {
  for (const auto& [value, mixes] : {std::pair<std::optional<std::string>, bool>{std::nullopt, true},
                                     {"0", false},
                                     {"1", true},
                                     {"none", true}}) {
    const Variable support("NCCL_GRAPH_MIXING_SUPPORT", value);
    EXPECT_EQ(nccl_sizes_here().mixes_graphs, mixes) << value.value_or("unset");
  }
}

TEST(NcclBytes, AreANamedPartOfWhatARunOnGpusNeeds) {
  PretrainConfig config = test::tiny_config();
  config.parallel = sizes(1, 2);
  const auto memory = [&] { return run_memory({config.model, config.parallel, config.train}); };
  EXPECT_EQ(memory().nccl, 0U);
  EXPECT_EQ(memory().text().find("NCCL"), std::string::npos);
  config.train.device = "cuda";
  const RunMemory gpus = memory();
  EXPECT_EQ(gpus.nccl, 384 * kMiB);
  EXPECT_NE(gpus.text().find(", NCCL's buffers 384.00 MiB"), std::string::npos) << gpus.text();
  EXPECT_EQ(gpus.on_device() - gpus.nccl + gpus.beside_device(), gpus.total() - gpus.nccl);
  config.parallel = sizes(1, 1);
  EXPECT_EQ(memory().nccl, 0U);
}

}  // namespace
}  // namespace megalith
