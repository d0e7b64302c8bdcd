#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "libcore/parallel/run_watch.h"
#include "libcore/threads/beside.h"

namespace megalith {

/// A thread that ends the process with the code of kComm when the run was stopped and the rank's device still
/// waits for other ranks 4 seconds later: the rank's own thread may be in a call of CUDA's driver that waits
/// for the device, while the device waits for a rank that is lost.
class RunGuard {
 public:
  /// `name`: of the rank, for the message. `run` must outlive it. Throws std::system_error if the system has
  /// no thread for it.
  RunGuard(const RunWatch& run, std::string name);
  ~RunGuard();
  RunGuard(const RunGuard&) = delete;
  RunGuard& operator=(const RunGuard&) = delete;

  /// Ends the guard, once the device waits for no other rank any more.
  void stand_down();

 private:
  void watch();

  const RunWatch& run_;
  const std::string name_;
  std::mutex mutex_;  // guards down_
  std::condition_variable changed_;
  bool down_ = false;
  Beside thread_;
};

}  // namespace megalith
