#pragma once

#include <array>
#include <csignal>

namespace megalith {

/// The signals that only request a stop while a StopSignal exists.
inline constexpr std::array kStopSignals = {SIGTERM, SIGINT, SIGUSR1, SIGHUP};

/// While this object lives, the signals of kStopSignals wait if they come to the calling thread. For a fork
/// with an exec after it: until the exec, the child has the handlers of this process, which would only note a
/// signal in memory that the exec discards. Later signals would not be passed on, so the child would run on.
class HeldSignals {
 public:
  HeldSignals();
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

  /// For the child, just before the exec: a signal that came since the fork, or comes from now on, ends it.
  /// Signals that this process ignores stay ignored. Makes only calls that are safe after a fork.
  void let_end_child() const;

 private:
  sigset_t before_;
};

}  // namespace megalith
