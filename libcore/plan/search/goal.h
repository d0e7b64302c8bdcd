#pragma once

#include <optional>
#include <vector>

#include "libcore/plan/search/search.h"

namespace megalith {

/// The problem with this many devices, in machines of the same size.
PlanProblem with_devices(PlanProblem, int devices);

/// The limits within which a training run should end.
struct Goal {
  double tokens = 1e12;               // tokens to train on
  double gpu_hour = 0;                // price of a device per hour; needed by `budget`
  std::optional<double> days = {};    // deadline
  std::optional<double> budget = {};  // in the currency of gpu_hour
};

/// A number of devices, its fastest plan, and the days and the cost of the whole run with that plan.
struct Scale {
  int devices = 0;
  Plan plan;
  double days = 0, cost = 0;
};

/// Numbers of devices that meet the goal, among those that the search tries. First it doubles the devices
/// (below one machine in powers of two, above in whole machines); with a deadline or a budget it also tries
/// the midpoints. It stops when doubling shortens the run by less than a tenth, no deadline is missed and no
/// budget is left.
/// Then it tries whole machines around the two answers: from a quarter of the fewest devices up to the
/// fewest, and from a quarter of the fastest number up to four times that number. It repeats this at most
/// three times, each time around the better answer. Last it tries the numbers between an answer and its tried
/// neighbours.
/// If one of these ranges has more than 64 numbers, it tries at most 32 of them, which divide the batch and
/// the model evenly. Numbers of devices for which no plan fits are left out.
struct Scaling {
  std::vector<Scale> powers;    // the results of doubling, fewest devices first
  std::optional<Scale> fewest;  // the fewest devices that meet every limit of the goal
  /// Only with a budget: the number of devices with which the run meets the goal and ends first.
  std::optional<Scale> fastest;
};
Scaling scaling(const PlanProblem&, const Fixed&, const Goal&);

}  // namespace megalith
