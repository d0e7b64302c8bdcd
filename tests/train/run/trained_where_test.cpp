#include "libcore/train/run/trained_where.h"

#include <gtest/gtest.h>

#include "libcore/train/run/run_rules.h"

namespace megalith {
namespace {

constexpr RunRanks kRanks[] = {RunRanks::kOne, RunRanks::kThreads, RunRanks::kProcesses};
constexpr RunDType kDTypes[] = {RunDType::kFloat32, RunDType::kBfloat16, RunDType::kHalf};
constexpr RunMethod kMethods[] = {RunMethod::kPretrain, RunMethod::kFull,   RunMethod::kLora,
                                  RunMethod::kPrefix,   RunMethod::kPacked, RunMethod::kPreferences};

// docs/cuda.md: one rank, fp32 or bf16, all parameters or a prefix.
TEST(TrainedWhere, NamesWhatEveryCombinationLacks) {
  for (const RunRanks ranks : kRanks)
    for (const RunDType dtype : kDTypes)
      for (const RunMethod method : kMethods) {
        EXPECT_EQ(lacking_there({"cpu", ranks, dtype, method}), "");
        EXPECT_EQ(lacking_there({"a toaster", ranks, dtype, method}), "devices such as a toaster");
        const std::string cuda = lacking_there({"cuda", ranks, dtype, method});
        const bool trained = method != RunMethod::kLora && method != RunMethod::kPreferences;
        EXPECT_EQ(cuda.empty(), ranks == RunRanks::kOne && dtype != RunDType::kHalf && trained) << cuda;
        if (ranks != RunRanks::kOne) {
          EXPECT_EQ(cuda, "several GPUs");
        } else if (dtype == RunDType::kHalf) {
          EXPECT_EQ(cuda, "GPUs in fp16");
        }
      }
}

/// Whether check_run() refuses the device for a run of two ranks (or one), in fp16 (or not).
bool refuses(const std::string& device, RunRanks ranks, RunDType dtype) {
  PretrainConfig config;
  config.data.mock = true;
  config.model.vocab_size = 64;
  config.train.device = device;
  config.train.fp16 = dtype == RunDType::kHalf;
  config.train.bf16 = dtype == RunDType::kBfloat16;
  const int world = ranks == RunRanks::kOne ? 1 : 2;
  config.parallel.world = config.parallel.local_world = config.parallel.data = world;
  (ranks == RunRanks::kProcesses ? config.parallel.processes : config.parallel.nproc) = world;
  Problems problems;
  check_run(config, problems);
  return !problems.empty();
}

TEST(TrainedWhere, IsWhatTheRulesOfARunRefuse) {
  for (const char* device : {"cpu", "cuda"})
    for (const RunRanks ranks : kRanks)
      for (const RunDType dtype : kDTypes)
        EXPECT_EQ(refuses(device, ranks, dtype),
                  !lacking_there({.device = device, .ranks = ranks, .dtype = dtype}).empty())
            << device << ' ' << static_cast<int>(ranks) << ' ' << static_cast<int>(dtype);
}

}  // namespace
}  // namespace megalith
