#pragma once

#include <string>

#include "libcore/plan/report/report.h"

namespace megalith {

/// How much of a report the text has.
enum class PlanDetail {
  kAnswer,  // the best plan and the command that starts it
  kPlans,   // and the ranked table of plans
  kAll,  // and the memory of each stage, the parts of a step, all launch lines, and what each rule rejected
};
/// The report as text. Where no plan fits, it says in any detail what was closest and why. Byte-identical for
/// equal input.
std::string plan_text(const Report&, PlanDetail);

}  // namespace megalith
