// Ranks that are threads and share one emulated GPU, which CUDA_VISIBLE_DEVICES names alone: every layout
// trains as one rank does on the CPU.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/ops/backend/shared_device.h"
#include "tests/apps/pretrain/emulated_ranks.h"
#include "tests/support/large.h"

namespace megalith::test {
namespace {

class SharedGpuApp : public EmulatedRanksApp {
 protected:
  void SetUp() override {}  // threads need no Gloo
  CommandResult share(int ranks, const std::string& options) const {
    return train(concat(kShort, options, " --device cuda --nproc ", ranks));
  }
  const std::string kShort = kLonger + "--train-iters 2 --eval-interval 2 ";
  const Variable named_{"CUDA_VISIBLE_DEVICES", "0"};
};

const RankLayout kLayouts[] = {
    {"Data4", 4, 1, ""},
    {"Zero1", 2, 2, "--use-distributed-optimizer"},
    {"Zero2", 2, 3, "--sharding stage2"},
    {"Tensor2", 2, 1, "--tensor-model-parallel-size 2"},
    {"TensorSequence2", 2, 2, "--tensor-model-parallel-size 2 --sequence-parallel"},
    {"Pipeline2", 2, 3, "--pipeline-model-parallel-size 2"},
    {"Interleaved2", 2, 1, "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1"},
    {"Context2", 2, 2, "--context-parallel-size 2"},
    {"Data2Tensor2Pipeline2", 8, 3, "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"},
};

class SharedGpuLayouts : public SharedGpuApp, public testing::WithParamInterface<RankLayout> {
 protected:
  void expect_same_in(const std::vector<int>& orders) const {
    expect_same_as_one(kShort, orders, [this](const std::string& options) {
      CommandResult ranks = share(GetParam().ranks, GetParam().options + options);
      EXPECT_NE(ranks.all().find(concat(GetParam().ranks, " ranks share the device 0000:00:00.0")),
                std::string::npos)
          << ranks.all();
      return ranks;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, SharedGpuLayouts, testing::ValuesIn(kLayouts),
                         [](const auto& instance) { return instance.param.name; });

TEST_P(SharedGpuLayouts, TrainAsOneRankOnTheCpuDoes) {
  expect_same_in({GetParam().order});
}
TEST_P(SharedGpuLayouts, TrainAlikeInThreeOrdersOfWork) {
  if (!large_tests_wanted()) GTEST_SKIP() << kOnlyAmongLargeTests;
  expect_same_in({1, 2, 3});
}

// Sums are in rank order in every run, so the order of work changes no bit.
TEST_F(SharedGpuApp, TrainWithEqualBitsInEveryOrderOfWork) {
  const Start tensor = [this](const std::string& options) {
    return share(2, "--tensor-model-parallel-size 2" + options);
  };
  const std::vector<double> one = norms(1, tensor);
  ASSERT_EQ(one.size(), 2);
  EXPECT_EQ(norms(4, tensor), one);
}

// All ranks know that they share the device, also those that did not ask for its memory.
TEST_F(SharedGpuApp, CaptureNoPassesInWhichTheyWaitForEachOther) {
  const EmulatedGpus gpus(1);
  const Variable counts("MEGALITH_EMULATOR_COUNTS", dir_ / "counts.json");
  for (const std::string layout : {"--tensor-model-parallel-size 2", "--context-parallel-size 2"}) {
    const CommandResult result = share(2, layout);
    EXPECT_EQ(result.code, 0) << result.all();
    EXPECT_NE(result.all().find("CUDA graphs: not used: ranks that share a GPU"), std::string::npos)
        << result.all();
    EXPECT_EQ(Json::load(dir_ / "counts.json")["captures"].as_int(), 0) << layout;
  }
}

TEST_F(SharedGpuApp, SaveAndResumeUnderAnotherLayout) {
  const EmulatedGpus gpus(2);
  const auto by = [this](const std::string& layout) {
    return [this, layout](const std::string& options) { return share(2, layout + options); };
  };
  expect_same_when_resumed(kShort, by("--use-distributed-optimizer"), by("--pipeline-model-parallel-size 2"));
}

TEST_F(SharedGpuApp, EndWithTheFailureOfTheirDevice) {
  const EmulatedGpus gpus(1);
  const Variable fault("MEGALITH_EMULATOR_FAULT", "214:300");
  const CommandResult result = share(2, "");
  EXPECT_EQ(result.code, 69) << result.all();
  EXPECT_TRUE(Pattern("error: rank [01]: .*ECC").is_in(result.err)) << result.all();
}

TEST_F(SharedGpuApp, AreRefusedWhereALibraryIsWantedOrTheyAreTooMany) {
  const EmulatedGpus gpus(1);
  const CommandResult gloo = share(2, "--distributed-backend gloo");
  EXPECT_EQ(gloo.code, 64) << gloo.all();
  EXPECT_NE(
      gloo.err.find("--distributed-backend gloo and --device cuda contradict each other: the tensors of "
                    "ranks that share a device stay in its memory"),
      std::string::npos)
      << gloo.all();
  const CommandResult nccl = share(2, "--distributed-backend nccl");
  EXPECT_EQ(nccl.code, 64) << nccl.all();
  EXPECT_NE(nccl.err.find("--distributed-backend nccl and ranks that share a device contradict each other"),
            std::string::npos)
      << nccl.all();
  const int many = kMaxSharers + 1;
  for (const std::string dry : {"", " --dry-run"}) {
    const CommandResult result = share(many, concat("--global-batch-size ", many, dry));
    EXPECT_EQ(result.code, 64) << result.all();
    EXPECT_NE(
        result.err.find(concat(many, " ranks would share the device 0000:00:00.0, of which at most 64 can")),
        std::string::npos)
        << result.all();
  }
}

// The second GPU is lost: its rank must not take that of the first.
TEST_F(SharedGpuApp, AreRefusedWhereTheVariableNamesMoreDevicesThanThereAre) {
  const EmulatedGpus gpus(1, 1);
  const Variable two("CUDA_VISIBLE_DEVICES", "0,1");
  for (const std::string dry : {"", "--dry-run"}) {
    const CommandResult result = share(2, dry);
    EXPECT_EQ(result.code, 69) << result.all();
    EXPECT_NE(result.err.find("rank 1 has no device: it is number 1 of its machine's ranks, and there is 1 "),
              std::string::npos)
        << result.all();
  }
}

// Each may use an equal part of the memory.
TEST_F(SharedGpuApp, NeedMemoryForAllOfThem) {
  const EmulatedGpus gpus(1);
  const Variable memory("MEGALITH_EMULATOR_MEMORY", concat(size_t{150} << 20));
  EXPECT_EQ(train(kShort + "--train-iters 1 --eval-iters 0 --device cuda").code, 0);
  const CommandResult two = share(4, "");
  EXPECT_EQ(two.code, 64) << two.all();
  EXPECT_TRUE(
      Pattern("rank . needs .* of device memory .*, the device, which 4 ranks share, has .* left for each")
          .is_in(two.err))
      << two.all();
}

}  // namespace
}  // namespace megalith::test
