#pragma once

#include <string>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/plan/request/answer.h"

namespace megalith {

/// The ranks of a run to be planned.
struct RunRanks {
  int world = 1;
  int here = 1;  // of them, on this machine
};

/// How a training run should divide its work, found by the planner from the run's own command line
/// (`megalith-pretrain --max-global-batch-size N …`): the fastest plan that this trainer runs.
struct RunPlan {
  Json options;  // the decisions, {"tensor_model_parallel_size": 2, …}, for Options::adopt()
  std::vector<std::string> why;  // lines for the log
};

/// `words`: the command line. Without --gpu the plan is for this machine's processor and its memory, which
/// its ranks share. What the command line fixes is kept. kUsage if no plan fits, with what is missing.
RunPlan plan_run(const std::vector<std::string>& words, const RunRanks& ranks);

/// What megalith-autoplan prints for this command line of training.
PlanAnswer plan_alone(const std::vector<std::string>& words);

}  // namespace megalith
