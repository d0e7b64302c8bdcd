#pragma once

#include <optional>
#include <vector>

#include "libcore/plan/search/search.h"

namespace megalith {

/// The problem with this many devices, in machines of the same size.
PlanProblem with_devices(PlanProblem, int devices);

/// The limits within which a training run should end.
struct Goal {
  double tokens = 1e12;               // to train on
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

/// Numbers of devices that meet the goal, as far as the search sees them. It doubles machines (powers of two
/// up to one machine) until twice the devices end less than a tenth sooner, but not while a deadline is
/// missed or budget is left, and also tries the midpoints. It then tries whole machines from a quarter of the
/// answer up to it (of the one that ends soonest, up to four times), again from each better answer, three
/// times at most, and the numbers between an answer and its tried neighbours. Of more than 64 whole machines
/// at most 32 are tried, those that divide the batch and the model evenly. A number of devices for which no
/// plan fits is left out.
struct Scaling {
  std::vector<Scale> powers;     // the doubled ones, fewest devices first
  std::optional<Scale> fewest;   // fewest devices that meet every limit of the goal
  std::optional<Scale> fastest;  // with a budget: the one within it that ends first
};
Scaling scaling(const PlanProblem&, const Fixed&, const Goal&);

}  // namespace megalith
