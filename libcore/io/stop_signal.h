#pragma once

#include <csignal>
#include <string_view>

#include "libcore/io/input_stream.h"

namespace megalith {

/// While it lives, SIGTERM, SIGINT and SIGUSR1 (Slurm's and Kubernetes' notices of preemption, and Ctrl-C)
/// only ask for a stop, which the loop grants at the end of a step; `wake` is set then, for who waits for a
/// pipe. A second SIGINT ends the process at once. One object at a time.
class StopSignal {
 public:
  explicit StopSignal(const Interrupt* wake = nullptr);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool asked() const;
  int number() const;             // of the signal; 0 when none came
  std::string_view name() const;  // "SIGTERM"; empty when none came

 private:
  struct sigaction before_[3];
};

}  // namespace megalith
