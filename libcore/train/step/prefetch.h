#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace megalith {

/// A thread that does one job at a time while its owner does something else. A job that it has not begun when
/// the owner wants it done, for want of a free core, the owner does itself. The owner is one thread.
class Prefetch {
 public:
  /// Must end soon when `cancelled` turns true, because nobody wants its work any more.
  using Job = std::function<void(const std::atomic<bool>& cancelled)>;

  Prefetch() = default;
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Returns at once, unless the job before is under way and must be cancelled first; its error is then
  /// forgotten.
  void start(Job job);
  /// Returns when the job is done and throws what it threw. kInternal when none was started since.
  void finish();

 private:
  enum State : uint8_t { kIdle, kGiven, kRunning, kDone };
  void cancel(std::unique_lock<std::mutex>&);
  void work();
  void run_job(std::unique_lock<std::mutex>&);

  std::mutex mutex_;
  std::condition_variable changed_;
  State state_ = kIdle;
  bool ending_ = false;
  Job job_;
  std::exception_ptr error_;
  std::atomic<bool> cancelled_ = false;
  std::thread thread_;
};

}  // namespace megalith
