#pragma once

#include <string>

#include "libcore/config/pretrain_config.h"

namespace megalith {

/// How the ranks of a run are made.
enum class RunRanks { kOne, kThreads, kProcesses };
enum class RunDType { kFloat32, kBfloat16, kHalf };
enum class RunMethod { kPretrain, kFull, kLora, kPrefix, kPacked, kPreferences };

/// A run, as far as it depends on the device whether this version can train it.
struct RunKind {
  std::string device = "cpu";  // that of --device, or of a plan: "cpu", "cuda", or the name of another kind
  RunRanks ranks = RunRanks::kOne;
  RunDType dtype = RunDType::kFloat32;
  RunMethod method = RunMethod::kPretrain;
};

/// What this version does not train on, of this run: "several GPUs"; empty: it trains the run. Run rules and
/// planner read this one table.
std::string lacking_there(const RunKind&);

/// Reports what the device of a run lacks for its ranks and dtype, with what to give.
void check_device(const PretrainConfig&, Problems&);

}  // namespace megalith
