#pragma once

#include <string>
#include <vector>

#include "libcore/plan/simulation/simulation.h"

namespace megalith {

/// The simulated steps next to the predictions of the closed forms: as a table, or as one JSON object.
std::string simulation_text(const PlanProblem&, const std::vector<SimulatedWorld>&, size_t columns = 0);
std::string simulation_json(const PlanProblem&, const std::vector<SimulatedWorld>&);

}  // namespace megalith
