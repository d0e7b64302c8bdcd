#pragma once

#include <csignal>
#include <string_view>

#include "libcore/io/streams/held_signals.h"
#include "libcore/io/streams/input_stream.h"

namespace megalith {

/// While this object lives, SIGTERM, SIGINT, SIGUSR1 and SIGHUP only request a stop instead of ending the
/// process; the caller's loop should end after its current step. (Slurm and Kubernetes send these signals
/// before preemption, Ctrl-C sends SIGINT, and a terminal that closes sends SIGHUP, which stays ignored under
/// nohup.) The signals also set `wake`, which wakes a thread that waits for a pipe. The first SIGINT is
/// acknowledged on stderr at once; a second one ends the process. The first signal counts; a SIGTERM that was
/// queued (sigqueue) with the number of SIGINT counts as SIGINT. Only one object may exist at a time.
class StopSignal {
 public:
  explicit StopSignal(const Interrupt* wake = nullptr);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool asked() const;
  int number() const;             // the signal that was received; 0: none
  std::string_view name() const;  // its name, as "SIGTERM"; empty: none

 private:
  struct sigaction before_[kStopSignals.size()];
};

/// Thrown to end work after a stop was requested; the interrupted work leaves no output. It is not an Error,
/// since nothing went wrong.
struct Stopped {
  int signal;
  std::string_view name;
};
/// Throws Stopped if a StopSignal exists and has received a signal. May be called from any thread.
void stop_if_asked();
/// While this object lives, stop_if_asked() does nothing in the thread that constructed the object. For work
/// that must not be interrupted.
class HoldStop {
 public:
  HoldStop();
  ~HoldStop();
  HoldStop(const HoldStop&) = delete;
  HoldStop& operator=(const HoldStop&) = delete;
};

}  // namespace megalith
