#pragma once

#include <optional>
#include <vector>

#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"
#include "libcore/plan/search/goal.h"

namespace megalith {

/// Everything reported about a search: the search itself and what was found out about its best plan.
struct Report {
  const PlanProblem& problem;
  const SearchResult& result;
  size_t columns = 0;                       // width to which lines are broken; 0: unlimited
  double gpu_hour = 0;                      // price of a device per hour; 0: unknown
  std::vector<TrainerAnswer> trainer = {};  // one for each plan
  std::vector<Sensitivity> sensitivities = {};
  std::vector<Plan> front = {};  // empty: not requested
  std::optional<Inverse> inverse = {};
  std::optional<Goal> goal = {};
  Scaling scaling = {};               // the answer to the goal
  std::optional<Remedy> remedy = {};  // the change that makes the search's missed or closest plan fit
};

}  // namespace megalith
