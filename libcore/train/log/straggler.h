#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Serves the purpose of Megatron's --log-straggler: to find the rank that keeps the others waiting. Counts
/// only the time in a rank's own stages, not the time in which the rank waits for others.
class StragglerReport {
 public:
  void add(double seconds) {
    seconds_ += seconds;
    ++steps_;
  }
  /// Collective: one line about the steps since the last call, the same on all ranks:
  ///  > stages took 10.1 ms a step on rank 3, 12.0 at the median, 15.2 on rank 1 (1.27 of the median)
  std::string text(Communicator& world);

 private:
  double seconds_ = 0;
  int64_t steps_ = 0;
};

/// The line of StragglerReport::text() for these times of the ranks, in ms per step.
std::string straggler_text(const std::vector<double>& ms);

}  // namespace megalith
