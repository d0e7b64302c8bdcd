#include "libcore/train/devices/trained_where.h"

#include <gtest/gtest.h>

#include "libcore/train/run/run_rules.h"

namespace megalith {
namespace {

constexpr DeviceRanks kRanks[] = {DeviceRanks::kOne, DeviceRanks::kThreads, DeviceRanks::kProcesses};
constexpr DeviceDType kDTypes[] = {DeviceDType::kFloat32, DeviceDType::kBfloat16, DeviceDType::kHalf};
constexpr DeviceMethod kMethods[] = {DeviceMethod::kPretrain, DeviceMethod::kFull,
                                     DeviceMethod::kLora,     DeviceMethod::kPrefix,
                                     DeviceMethod::kPacked,   DeviceMethod::kPreferences};

// docs/cuda.md: fp32 or bf16, all parameters or a prefix, any ranks.
TEST(TrainedWhere, NamesWhatEveryCombinationLacks) {
  for (const DeviceRanks ranks : kRanks)
    for (const DeviceDType dtype : kDTypes)
      for (const DeviceMethod method : kMethods) {
        EXPECT_EQ(lacking_there({"cpu", ranks, dtype, method}), "");
        EXPECT_EQ(lacking_there({"a toaster", ranks, dtype, method}), "devices such as a toaster");
        const std::string cuda = lacking_there({"cuda", ranks, dtype, method});
        const bool trained = method != DeviceMethod::kLora && method != DeviceMethod::kPreferences;
        EXPECT_EQ(cuda.empty(), dtype != DeviceDType::kHalf && trained) << cuda;
        if (dtype == DeviceDType::kHalf) EXPECT_EQ(cuda, "GPUs in fp16");
      }
}

/// Whether check_run() refuses the device for a run of two ranks (or one), in fp16 (or not).
bool refuses(const std::string& device, DeviceRanks ranks, DeviceDType dtype) {
  PretrainConfig config;
  config.data.mock = true;
  config.model.vocab_size = 64;
  config.train.device = device;
  config.train.fp16 = dtype == DeviceDType::kHalf;
  config.train.bf16 = dtype == DeviceDType::kBfloat16;
  const int world = ranks == DeviceRanks::kOne ? 1 : 2;
  config.parallel.world = config.parallel.local_world = config.parallel.data = world;
  (ranks == DeviceRanks::kProcesses ? config.parallel.processes : config.parallel.nproc) = world;
  Problems problems;
  check_run(config, problems);
  return !problems.empty();
}

TEST(TrainedWhere, IsWhatTheRulesOfARunRefuse) {
  for (const char* device : {"cpu", "cuda"})
    for (const DeviceRanks ranks : kRanks)
      for (const DeviceDType dtype : kDTypes)
        EXPECT_EQ(refuses(device, ranks, dtype),
                  !lacking_there({.device = device, .ranks = ranks, .dtype = dtype}).empty())
            << device << ' ' << static_cast<int>(ranks) << ' ' << static_cast<int>(dtype);
}

}  // namespace
}  // namespace megalith
