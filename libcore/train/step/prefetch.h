#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <optional>

#include "libcore/threads/serial_executor.h"

namespace megalith {

/// A thread that does one job at a time while its owner does something else. A job that it has not begun when
/// the owner wants it done, for want of a free core, the owner does itself. The owner is one thread.
class Prefetch {
 public:
  /// Must end soon when `cancelled` turns true: nobody wants its work any more.
  using Job = std::function<void(const std::atomic<bool>& cancelled)>;

  /// Returns at once, unless the job before is under way and must be cancelled first; its error is then
  /// forgotten. std::system_error when there are no more threads.
  void start(Job job);
  /// Returns when the job is done and throws what it threw. kInternal when none was started since.
  void finish();

 private:
  void run(const Job& job);
  void cancel();

  bool started_ = false;
  std::exception_ptr error_;  // of the job
  std::atomic<bool> cancelled_ = false;
  std::optional<SerialExecutor> thread_;
};

}  // namespace megalith
