#pragma once

#include <optional>
#include <vector>

#include "libcore/plan/search/search.h"

namespace megalith {

/// The problem with that many devices, in machines of the same size.
PlanProblem with_devices(PlanProblem, int devices);

/// What a training run is to end within.
struct Goal {
  double tokens = 1e12;               // to train on
  double gpu_hour = 0;                // price of a device for an hour; needed by `budget`
  std::optional<double> days = {};    // deadline
  std::optional<double> budget = {};  // in the money of gpu_hour
};

/// A number of devices with its fastest plan and what the whole run takes with it.
struct Scale {
  int devices = 0;
  Plan plan;
  double days = 0, cost = 0;
};

/// Numbers of devices with which the goal is met, as far as the search sees them: doubled machines (powers of
/// two up to one) until twice the devices end less than a tenth sooner, but no deadline is given up and no
/// budget left; the halves between; whole machines from a quarter of the answer up to it (of what ends
/// soonest up to four times as many), and so on from each better answer, three times at most; and those
/// between an answer and what was tried beside it. Of more than 64 whole machines at most 32 are tried, which
/// divide the batch and the model evenly. A number of devices for which no plan fits is left out.
struct Scaling {
  std::vector<Scale> powers;     // the doubled, fewest devices first
  std::optional<Scale> fewest;   // fewest devices that meet every bound of the goal
  std::optional<Scale> fastest;  // with a budget: which of those within it ends first
};
Scaling scaling(const PlanProblem&, const Fixed&, const Goal&);

}  // namespace megalith
