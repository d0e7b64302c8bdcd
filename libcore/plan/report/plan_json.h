#pragma once

#include <string>

#include "libcore/json/json.h"
#include "libcore/plan/report/report.h"

namespace megalith {

/// What plan_text() says, as one JSON object.
std::string plan_json(const Report&);

/// One plan of it.
Json::Object plan_object(const PlanProblem&, const Plan&);

/// A figure with nine digits, for JSON: what is left of it is the same on every machine, whatever its
/// mathematical library rounds.
Json figure(double value);

}  // namespace megalith
