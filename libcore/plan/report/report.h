#pragma once

#include <optional>
#include <vector>

#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"
#include "libcore/plan/search/goal.h"

namespace megalith {

/// All that is said about a search: the search itself and what is found out about its best plan.
struct Report {
  const PlanProblem& problem;
  const SearchResult& result;
  size_t columns = 0;                       // to fit lines into; 0: as long as they are
  double gpu_hour = 0;                      // price of a device for an hour; 0: not known
  std::vector<TrainerAnswer> trainer = {};  // of each plan
  std::vector<Sensitivity> sensitivities = {};
  std::vector<Plan> front = {};  // empty: not asked for
  std::optional<Inverse> inverse = {};
  std::optional<Goal> goal = {};
  Scaling scaling = {};               // of the goal
  std::optional<Remedy> remedy = {};  // of the search's missed or closest plan
};

}  // namespace megalith
