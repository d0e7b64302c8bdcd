#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/dialects/paddle/paddle_config.h"
#include "libcore/json/json.h"
#include "libcore/options/cli.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/request/answer.h"

namespace megalith {

/// The number of ranks of a run that is to be planned.
struct RunRanks {
  int world = 1;
  int here = 1;  // number of ranks on this machine
};

/// The planner's options of a run. Where the run itself would ignore one of them, its plan obeys it
/// (`--attention-backend`). Those that shape an answer (`--top`, `--json`) are refused unless the command
/// only asks for plans.
struct PlanSettings {
  PlanOptions options;
  std::set<std::string> taken = {};  // names of the options that take() has set

  /// Adds the group "Planning" and the fates of the planner's other options. `is_question`: whether the
  /// command only asks for plans; called in Options::check().
  void add_to(Options&, std::function<bool()> is_question);
  /// For a plan, after Options::check() of planned_groups(): sets the options that the run ignores, so that
  /// the log does not name them, and checks them. kUsage with every problem.
  void take(Options&);
};

/// A run whose options are complete, except for those that its plan will decide. The options in
/// planned_groups() have been checked.
struct SettledRun {
  const PretrainConfig& config;
  const PlanSettings& plan;
  const PaddleConfig& paddle;
  const Options& options;  // for asking which options were given
};
/// The groups of options that influence a plan and are not decided by it.
std::vector<std::string> planned_groups();

/// The fastest plan that this trainer can run: how a run should divide its work (`megalith-pretrain
/// --max-global-batch-size N …`).
struct RunPlan {
  std::vector<LaunchOption> decided;
  std::vector<std::string> why;  // the reasons, as lines for the log
};

/// Plans a run. Without --gpu, the plan is for this machine's processor and for its memory, which the ranks
/// share. Options that the user gave are kept. Throws kUsage if no plan fits, and says what is missing.
RunPlan plan_run(const SettledRun& run, const RunRanks& ranks);

/// The plan's decisions as the JSON object that Options::adopt() accepts: {"tensor_model_parallel_size": 2,
/// …}.
Json as_members(const std::vector<LaunchOption>& decided);

/// Answers a command that only asks for plans, for ranks on other machines: what megalith-autoplan prints for
/// a run with these options.
PlanAnswer answer_question(const SettledRun& run);

}  // namespace megalith
