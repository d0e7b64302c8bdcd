#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// For --log-straggler: finds the rank that keeps the others waiting, as Megatron's option of this name does.
/// Counts only the time that a rank spends in its own stages, not the time that it waits for other ranks.
class StragglerReport {
 public:
  void add(double seconds) {
    seconds_ += seconds;
    ++steps_;
  }
  /// Collective. Returns one line about the steps since the last call, the same on all ranks:
  ///  > stages took 10.1 ms a step on rank 3, 12.0 at the median, 15.2 on rank 1 (1.27 of the median)
  std::string text(Communicator& world);

 private:
  double seconds_ = 0;
  int64_t steps_ = 0;
};

/// The line of StragglerReport::text() for these times of the ranks, in ms per step.
std::string straggler_text(const std::vector<double>& ms);

}  // namespace megalith
