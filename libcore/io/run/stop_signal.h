#pragma once

#include <csignal>
#include <string_view>

#include "libcore/io/streams/input_stream.h"

namespace megalith {

/// While it lives, SIGTERM, SIGINT, SIGUSR1 and SIGHUP (Slurm's and Kubernetes' notices of preemption,
/// Ctrl-C, and a terminal that closes, unless nohup says to go on) only ask for a stop, which the loop grants
/// at the end of a step; `wake` is set then, for who waits for a pipe. The first SIGINT is answered on stderr
/// at once, a second one ends the process. One object at a time.
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
  struct sigaction before_[4];
};

/// Thrown to end work when a stop is asked for, which then leaves nothing. Not an Error, because nothing went
/// wrong.
struct Stopped {
  int signal;
  std::string_view name;
};
/// Throws Stopped when the StopSignal that lives now, if one does, is asked for a stop. By any thread.
void stop_if_asked();
/// While it lives, stop_if_asked() of the thread that made it does nothing: for work that must be whole, so
/// the stop waits for it.
class HoldStop {
 public:
  HoldStop();
  ~HoldStop();
  HoldStop(const HoldStop&) = delete;
  HoldStop& operator=(const HoldStop&) = delete;
};

}  // namespace megalith
