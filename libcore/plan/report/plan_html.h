#pragma once

#include <string>

#include "libcore/plan/report/report.h"

namespace megalith {

/// One page without any other file: the plans, memory of the best by stage as bars, its pipeline's timeline,
/// the Pareto front, and what plan_text() says.
std::string plan_html(const Report&);

}  // namespace megalith
