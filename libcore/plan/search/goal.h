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

/// A number of devices with its fastest plan and what the whole run costs with it.
struct Scale {
  int devices = 0;
  Plan plan;
  double days = 0, cost = 0;
};

/// Numbers of devices that meet the goal, among those that the search tries. First it doubles the devices
/// (below one machine in powers of two, above in whole machines), and with a deadline or budget also tries
/// the midpoints. It stops when doubling shortens the run by less than a tenth, no deadline is missed and no
/// budget is left. Around the answer it then tries whole machines: from a quarter of the fewest up to it, and
/// from a quarter of the fastest up to four times as many, at most three times, each time from the better
/// answer. Last it tries the numbers between an answer and its tried neighbours. Of more than 64 such numbers
/// it tries at most 32, those that divide the batch and the model evenly. A number of devices for which no
/// plan fits is left out.
struct Scaling {
  std::vector<Scale> powers;     // the doubled ones, fewest devices first
  std::optional<Scale> fewest;   // fewest devices that meet every limit of the goal
  std::optional<Scale> fastest;  // only with a budget: the one that meets the goal and ends first
};
Scaling scaling(const PlanProblem&, const Fixed&, const Goal&);

}  // namespace megalith
