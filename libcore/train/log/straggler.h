#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

/// Megatron's --log-straggler for its purpose: which rank keeps the others waiting. Only the time that a
/// rank's own stages took counts, because what it waited for others is theirs.
class StragglerReport {
 public:
  void add(double seconds) {
    seconds_ += seconds;
    ++steps_;
  }
  /// One line about the steps since the last one, the same on all ranks, each of which calls it:
  ///  > stages took 10.1 ms a step on rank 3, 12.0 at the median, 15.2 on rank 1 (1.27 of the median)
  std::string text(Communicator& world);

 private:
  double seconds_ = 0;
  int64_t steps_ = 0;
};

/// The same of given times, rank by rank, in ms a step.
std::string straggler_text(const std::vector<double>& ms);

}  // namespace megalith
