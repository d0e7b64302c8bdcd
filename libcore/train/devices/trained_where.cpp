#include "libcore/train/devices/trained_where.h"

#include <algorithm>
#include <iterator>

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// What this version trains on a device: any of these ranks in any of these dtypes by any of these methods.
struct TrainedThere {
  const char* device;
  std::initializer_list<DeviceRanks> ranks;
  std::initializer_list<DeviceDType> dtypes;
  std::initializer_list<DeviceMethod> methods;
};

const TrainedThere kTrained[] = {
    {"cpu",
     {DeviceRanks::kOne, DeviceRanks::kThreads, DeviceRanks::kProcesses},
     {DeviceDType::kFloat32, DeviceDType::kBfloat16, DeviceDType::kHalf},
     {DeviceMethod::kPretrain, DeviceMethod::kFull, DeviceMethod::kLora, DeviceMethod::kPrefix,
      DeviceMethod::kPacked, DeviceMethod::kPreferences}},
    // Several ranks: emulated (docs/cuda.md), not yet run on a GPU.
    {"cuda",
     {DeviceRanks::kOne, DeviceRanks::kThreads, DeviceRanks::kProcesses},
     {DeviceDType::kFloat32, DeviceDType::kBfloat16},
     {DeviceMethod::kPretrain, DeviceMethod::kFull, DeviceMethod::kPrefix, DeviceMethod::kPacked}},
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
  if (!among(there->dtypes, run.dtype)) return "GPUs in fp16";
  if (!among(there->methods, run.method)) return concat("GPUs by ", method_words(run.method));
  return {};
}

DeviceRun device_run(const PretrainConfig& config) {
  return {.device = config.train.device,
          .ranks = config.parallel.processes > 1 ? DeviceRanks::kProcesses
                   : config.parallel.world > 1   ? DeviceRanks::kThreads
                                                 : DeviceRanks::kOne,
          .dtype = config.train.fp16   ? DeviceDType::kHalf
                   : config.train.bf16 ? DeviceDType::kBfloat16
                                       : DeviceDType::kFloat32};
}

void check_device(const PretrainConfig& config, Problems& problems) {
  const std::string& device = config.train.device;
  if (device == "gpu") return;  // becomes cuda or cpu when the devices are known
  if (config.train.fp16 && !lacking_there({.device = device, .dtype = DeviceDType::kHalf}).empty())
    problems.add(Opt{"fp16"}, " and ", Opt{"device"}, ' ', device,
                 " contradict each other: fp16 is computed on the CPU only; give ", Opt{"bf16"});
}

}  // namespace megalith
