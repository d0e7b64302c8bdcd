#pragma once

#include <csignal>
#include <string_view>

#include "libcore/io/streams/input_stream.h"

namespace megalith {

/// While it lives, SIGTERM, SIGINT, SIGUSR1 and SIGHUP (Slurm's and Kubernetes' notices of preemption,
/// Ctrl-C, and a terminal that closes, unless nohup ignores that) only ask for a stop, which the loop grants
/// at the end of a step; they also set `wake`, for a thread that waits for a pipe. The first SIGINT is
/// answered on stderr at once, a second one ends the process. At most one object at a time.
class StopSignal {
 public:
  explicit StopSignal(const Interrupt* wake = nullptr);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool asked() const;
  int number() const;             // of the signal; 0 if none came
  std::string_view name() const;  // "SIGTERM"; empty when none came

 private:
  struct sigaction before_[4];
};

/// Thrown to end work after a stop was asked for; the work leaves nothing. Not an Error: nothing went wrong.
struct Stopped {
  int signal;
  std::string_view name;
};
/// Throws Stopped if the StopSignal that lives now, if any, was asked for a stop. Any thread may call.
void stop_if_asked();
/// While it lives, stop_if_asked() does nothing in the thread that made it: for work that must be whole, for
/// which the stop waits.
class HoldStop {
 public:
  HoldStop();
  ~HoldStop();
  HoldStop(const HoldStop&) = delete;
  HoldStop& operator=(const HoldStop&) = delete;
};

}  // namespace megalith
