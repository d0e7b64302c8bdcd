#pragma once

#include <string>

#include "libcore/config/pretrain_config.h"

namespace megalith {

/// How the ranks of a run are made.
enum class DeviceRanks { kOne, kThreads, kProcesses };
enum class DeviceMethod { kPretrain, kFull, kLora, kEightBitLora, kPrefix, kPacked, kPreferences };

/// A run, as far as it depends on the device whether this version can train it.
struct DeviceRun {
  std::string device = "cpu";  // that of --device, or of a plan: "cpu", "cuda", or the name of another kind
  DeviceRanks ranks = DeviceRanks::kOne;
  DeviceMethod method = DeviceMethod::kPretrain;
};

/// The run that these options describe; its method is kPretrain.
DeviceRun device_run(const PretrainConfig&);

/// On what this version cannot train this run, as the end of "this version does not train on …": "several
/// GPUs"; empty: it can. The rules of a run and the planner read this one table.
std::string lacking_there(const DeviceRun&);

}  // namespace megalith
