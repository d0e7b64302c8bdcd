#pragma once

#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/json/json.h"
#include "libcore/options/cli.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/request/answer.h"

namespace megalith {

/// The ranks of a run to be planned.
struct RunRanks {
  int world = 1;
  int here = 1;  // how many of them are on this machine
};

/// A run whose options are settled, except for those that its plan decides. Those in planned_groups() have
/// been checked.
struct SettledRun {
  const PretrainConfig& config;
  const PlanTarget& target;
  const PaddleConfig& paddle;
  const Options& options;  // shows which options were given
};
/// The groups of options that a plan depends on and does not decide.
std::vector<std::string> planned_groups();

/// How a training run should divide its work (`megalith-pretrain --max-global-batch-size N …`): the fastest
/// plan that this trainer runs.
struct RunPlan {
  std::vector<LaunchOption> decided;
  std::vector<std::string> why;  // lines for the log
};

/// Without --gpu the plan is for this machine's processor and its memory, which its ranks share. What the
/// run's options fix is kept. kUsage if no plan fits, with what is missing.
RunPlan plan_run(const SettledRun& run, const RunRanks& ranks);

/// Decisions in the form that Options::adopt() takes: {"tensor_model_parallel_size": 2, …}.
Json as_members(const std::vector<LaunchOption>& decided);

/// What megalith-autoplan prints for this command line, which may have any of that program's options and is
/// read in the same way.
PlanAnswer answer_as_autoplan(const std::vector<std::string>& arguments);

}  // namespace megalith
