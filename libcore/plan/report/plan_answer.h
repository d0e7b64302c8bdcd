#pragma once

#include <string>

#include "libcore/plan/report/report.h"

namespace megalith {

/// What the plan is for: the model, the devices, the precision and the program that trains. One line.
std::string plan_subject(const Report&);
/// The best plan: its layout, memory and time, who runs it, and the command that starts it there. The report
/// must have a plan.
std::string plan_answer(const Report&);

}  // namespace megalith
