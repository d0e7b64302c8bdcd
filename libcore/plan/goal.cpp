#include "libcore/plan/goal.h"

#include <algorithm>
#include <sstream>

#include "libcore/base/text.h"
#include "libcore/config/parallel_config.h"
#include "libcore/plan/launch.h"
#include "libcore/plan/plan_text.h"

namespace megalith {
namespace {

constexpr int kSteps = 32;           // searches between two powers of two: a third of a second at most
constexpr double kWorthwhile = 0.9;  // of the time with half the devices: more are not worth their price

bool meets(const Goal& goal, const Scale& scale) {
  return (!goal.days || scale.days <= *goal.days) && (!goal.budget || scale.cost <= *goal.budget);
}

/// The run with `devices` of them, in whole machines.
std::optional<Scale> scale_to(const PlanProblem& p, const Fixed& fixed, const Goal& goal, int devices) {
  PlanProblem scaled = with_devices(p, devices);
  const SearchResult found = search_beside_saves(scaled, fixed, 1);
  if (found.plans.empty()) return std::nullopt;
  const double hours = goal.tokens / found.plans.front().tokens_per_second(scaled) / 3600;
  return Scale{devices, found.plans.front(), hours / 24, hours * devices * goal.gpu_hour};
}

/// The fewest devices above `missing` that meet the goal, when `meeting` do.
Scale fewest(const PlanProblem& p, const Fixed& fixed, const Goal& goal, int missing, const Scale& meeting) {
  const int machine = std::min(p.machine.local_world, meeting.devices);
  const int machines = (meeting.devices - missing) / machine;
  const int step = machine * std::max(1, (machines + kSteps - 1) / kSteps);
  for (int devices = missing / machine * machine + step; devices < meeting.devices; devices += step)
    if (const auto scale = scale_to(p, fixed, goal, devices); scale && meets(goal, *scale)) return *scale;
  return meeting;
}

std::string row_of(const PlanProblem& p, const Goal& goal, const Scale& scale) {
  return concat(scale.devices, " devices, ", format_fixed(scale.days, 1), " days",
                goal.gpu_hour > 0 ? concat(", cost ", format_count(static_cast<int64_t>(scale.cost))) : "",
                ":  ", launch_options(with_devices(p, scale.devices), scale.plan.candidate));
}

}  // namespace

PlanProblem with_devices(PlanProblem p, int devices) {
  Machine& machine = p.machine;
  const int local = std::min(machine.local_world, devices);
  if (machine.shares_memory) machine.device.memory *= static_cast<double>(machine.local_world) / local;
  machine.world = devices;
  machine.local_world = local;
  return p;
}

Scaling scaling(const PlanProblem& p, const Fixed& fixed, const Goal& goal) {
  Scaling out;
  int missing = 0;
  for (int devices = 1; devices <= ParallelConfig::kMaxRanks; devices *= 2) {
    const auto scale = scale_to(p, fixed, goal, devices);
    if (scale && !out.powers.empty() && scale->days > kWorthwhile * out.powers.back().days) break;
    if (scale) out.powers.push_back(*scale);
    const bool met = scale && meets(goal, *scale);
    if (met && !out.least) out.least = fewest(p, fixed, goal, missing, *scale);
    if (met && goal.budget && (!out.fastest || scale->days < out.fastest->days)) out.fastest = scale;
    if (!met) missing = devices;
  }
  return out;
}

std::string scaling_text(const PlanProblem& p, const Goal& goal, const Scaling& found) {
  std::ostringstream out;
  out << "\ndevices for " << format_fixed(goal.tokens / 1e9, 1) << " billion tokens";
  if (goal.days) out << " in " << format_fixed(*goal.days, 1) << " days";
  if (goal.budget) out << " for at most " << format_count(static_cast<int64_t>(*goal.budget));
  out << '\n';
  for (const Scale& scale : found.powers) out << "  " << row_of(p, goal, scale) << '\n';
  if (!goal.days && !goal.budget) return out.str();
  if (found.least)
    out << "fewest: " << row_of(p, goal, *found.least) << '\n';
  else
    out << "no number of devices meets that\n";
  if (found.fastest) out << "soonest within the budget: " << row_of(p, goal, *found.fastest) << '\n';
  return out.str();
}

}  // namespace megalith
