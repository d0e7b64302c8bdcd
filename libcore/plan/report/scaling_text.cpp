#include "libcore/plan/report/scaling_text.h"

#include <sstream>

#include "libcore/base/text.h"
#include "libcore/plan/launch/launch_options.h"

namespace megalith {
namespace {

std::string row_of(const PlanProblem& p, const Goal& goal, const Scale& scale) {
  return concat(scale.devices, " devices, ", format_fixed(scale.days, 1), " days",
                goal.gpu_hour > 0 ? concat(", cost ", format_count(static_cast<int64_t>(scale.cost))) : "",
                ":  ", launch_options(with_devices(p, scale.devices), scale.plan.candidate));
}

}  // namespace

std::string scaling_text(const PlanProblem& p, const Goal& goal, const Scaling& found) {
  std::ostringstream out;
  out << "\ndevices for " << format_fixed(goal.tokens / 1e9, 1) << " billion tokens";
  if (goal.days) out << " in " << format_fixed(*goal.days, 1) << " days";
  if (goal.budget) out << " for at most " << format_count(static_cast<int64_t>(*goal.budget));
  out << '\n';
  for (const Scale& scale : found.powers) out << "  " << row_of(p, goal, scale) << '\n';
  if (!goal.days && !goal.budget) return out.str();
  if (found.fewest)
    out << "fewest: " << row_of(p, goal, *found.fewest) << '\n';
  else
    out << "no number of devices meets that\n";
  if (found.fastest) out << "soonest within the budget: " << row_of(p, goal, *found.fastest) << '\n';
  return out.str();
}

}  // namespace megalith
