#pragma once

#include <string>

#include "libcore/plan/report/report.h"

namespace megalith {

/// A self-contained page: the plans, the best plan's memory by stage as bars, its pipeline's timeline, the
/// Pareto front, and the whole plan_text().
std::string plan_html(const Report&);

}  // namespace megalith
