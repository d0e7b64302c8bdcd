#include "libcore/train/devices/trained_where.h"

#include <gtest/gtest.h>

#include "libcore/train/run/run_rules.h"

namespace megalith {
namespace {

constexpr DeviceRanks kRanks[] = {DeviceRanks::kOne, DeviceRanks::kThreads, DeviceRanks::kProcesses};
constexpr DeviceMethod kMethods[] = {
    DeviceMethod::kPretrain, DeviceMethod::kFull,   DeviceMethod::kLora,       DeviceMethod::kEightBitLora,
    DeviceMethod::kPrefix,   DeviceMethod::kPacked, DeviceMethod::kPreferences};

// docs/cuda.md: no weights of 8 bits.
TEST(TrainedWhere, NamesWhatEveryCombinationLacks) {
  for (const DeviceRanks ranks : kRanks)
    for (const DeviceMethod method : kMethods) {
      EXPECT_EQ(lacking_there({"cpu", ranks, method}), "");
      EXPECT_EQ(lacking_there({"a toaster", ranks, method}), "devices such as a toaster");
      const std::string cuda = lacking_there({"cuda", ranks, method});
      if (method == DeviceMethod::kEightBitLora)
        EXPECT_EQ(cuda, "GPUs by LoRA over weights of 8 bits");
      else
        EXPECT_EQ(cuda, "");
    }
}

/// Whether check_run() refuses the device for a run of two ranks, or of one.
bool refuses(const std::string& device, DeviceRanks ranks) {
  PretrainConfig config;
  config.data.mock = true;
  config.model.vocab_size = 64;
  config.train.device = device;
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
      EXPECT_EQ(refuses(device, ranks), !lacking_there({.device = device, .ranks = ranks}).empty())
          << device << ' ' << static_cast<int>(ranks);
}

}  // namespace
}  // namespace megalith
