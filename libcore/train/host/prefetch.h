#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>

#include "libcore/threads/serial_executor.h"

namespace megalith {

/// A thread that does one job at a time while its owner, which is one thread, does something else. If the
/// owner wants the result before the thread has begun, because no core was free, the owner does the job
/// itself.
class Prefetch {
 public:
  /// A job. It must end soon once `cancelled` is true, because its result is no longer wanted.
  using Job = std::function<void(const std::atomic<bool>& cancelled)>;

  /// Starts a job and returns at once. A previous job that finish() did not wait for is cancelled first, and
  /// its error is dropped. std::system_error when no thread can be created.
  void start(Job job);
  /// Waits until the job is done and throws what it threw. kInternal when no job was started since the last
  /// call.
  void finish();

 private:
  void run(const Job& job);
  void cancel();

  bool started_ = false;
  std::exception_ptr error_;  // error that the job threw
  std::atomic<bool> cancelled_ = false;
  std::optional<SerialExecutor> thread_;
};

}  // namespace megalith
