#pragma once

#include <string>

#include "libcore/json/json.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/explain.h"
#include "libcore/plan/search/goal.h"
#include "libcore/plan/simulation/simulation.h"

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

/// The ranked table, the memory estimate of the best plan's stages, what was rejected by which rule, and how
/// to start it. Byte-identical for equal input.
std::string plan_text(const Report&);

/// The same as one JSON object.
std::string plan_json(const Report&);

/// A table of simulated steps beside what the closed forms say, and the same as one JSON object.
std::string simulation_text(const PlanProblem&, const std::vector<SimulatedWorld>&, size_t columns = 0);
std::string simulation_json(const PlanProblem&, const std::vector<SimulatedWorld>&);

/// A figure with nine digits, for JSON: what is left of it is the same on every machine, whatever its
/// mathematical library rounds.
Json figure(double value);

/// " (12.879 of them for a token)", of a model with experts.
std::string active_text(const ModelShape&);

/// "none", "attention", "norm,act", "products", "4 layers", "full".
std::string recompute_text(const Candidate&);

/// Figures of a plan for training on a trillion tokens.
struct TrillionTokens {
  double days = 0, megawatt_hours = 0, cost = 0;
};
TrillionTokens trillion_tokens(const PlanProblem&, const Plan&, double gpu_hour);

}  // namespace megalith
