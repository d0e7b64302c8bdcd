#pragma once

#include <string>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/plan/price/traffic.h"
#include "libcore/plan/report/report.h"

namespace megalith {

/// The contents of plan_text(), as one JSON object.
std::string plan_json(const Report&);

/// One plan as an object of plan_json().
Json::Object plan_object(const PlanProblem&, const Plan&);

/// A figure with nine digits, for JSON: rounding makes it the same on every machine, whatever mathematical
/// library it uses.
Json figure(double value);

/// The groups as objects, each with its calls and bytes.
Json array_of_traffic(const std::vector<GroupTraffic>&);

}  // namespace megalith
