#include "libcore/train/devices/trained_where.h"

#include <algorithm>
#include <iterator>

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// What this version trains on a device: any of these ranks by any of these methods.
struct TrainedThere {
  const char* device;
  std::initializer_list<DeviceRanks> ranks;
  std::initializer_list<DeviceMethod> methods;
};

const TrainedThere kTrained[] = {
    {"cpu",
     {DeviceRanks::kOne, DeviceRanks::kThreads, DeviceRanks::kProcesses},
     {DeviceMethod::kPretrain, DeviceMethod::kFull, DeviceMethod::kLora, DeviceMethod::kEightBitLora,
      DeviceMethod::kPrefix, DeviceMethod::kPacked, DeviceMethod::kPreferences}},
    // Several ranks: emulated (docs/cuda.md), not yet run on a GPU.
    {"cuda",
     {DeviceRanks::kOne, DeviceRanks::kThreads, DeviceRanks::kProcesses},
     {DeviceMethod::kPretrain, DeviceMethod::kFull, DeviceMethod::kLora, DeviceMethod::kPrefix,
      DeviceMethod::kPacked, DeviceMethod::kPreferences}},
};

bool among(const auto& list, auto value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

const char* method_words(DeviceMethod method) {
  switch (method) {
    case DeviceMethod::kPretrain:
      return "training from scratch";
    case DeviceMethod::kFull:
      return "training all parameters";
    case DeviceMethod::kLora:
      return "LoRA";
    case DeviceMethod::kEightBitLora:
      return "LoRA over weights of 8 bits";
    case DeviceMethod::kPrefix:
      return "a prefix";
    case DeviceMethod::kPacked:
      return "packed records";
    case DeviceMethod::kPreferences:
      return "preferences";
  }
  return "";
}

}  // namespace

std::string lacking_there(const DeviceRun& run) {
  const auto there = std::find_if(std::begin(kTrained), std::end(kTrained),
                                  [&](const TrainedThere& one) { return one.device == run.device; });
  if (there == std::end(kTrained)) return "devices such as " + run.device;
  if (!among(there->ranks, run.ranks)) return "several GPUs";
  if (!among(there->methods, run.method)) return concat("GPUs by ", method_words(run.method));
  return {};
}

DeviceRun device_run(const PretrainConfig& config) {
  return {.device = config.train.device,
          .ranks = config.parallel.processes > 1 ? DeviceRanks::kProcesses
                   : config.parallel.world > 1   ? DeviceRanks::kThreads
                                                 : DeviceRanks::kOne};
}

}  // namespace megalith
