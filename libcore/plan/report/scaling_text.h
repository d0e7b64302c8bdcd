#pragma once

#include <string>

#include "libcore/plan/search/goal.h"

namespace megalith {

/// The answer to a goal, headed "devices for 1000.0 billion tokens in 30.0 days": a table of Scaling::powers,
/// fewest and fastest.
std::string scaling_text(const PlanProblem&, const Goal&, const Scaling&);

}  // namespace megalith
