#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace megalith {

/// A thread that does one job at a time while its owner does something else. It starts with the first job and
/// ends with this object. The owner is one thread.
class Prefetch {
 public:
  /// Sees `cancelled` turn true when nobody wants its work any more, and then ends soon.
  using Job = std::function<void(const std::atomic<bool>& cancelled)>;

  Prefetch() = default;
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// Returns at once, unless the job before must be cancelled first; its error is then forgotten.
  void start(Job job);
  /// Waits until the job is done and throws what it threw. kInternal when none was started since.
  void finish();

 private:
  enum State : uint8_t { kIdle, kGiven, kDone };
  void cancel_and_wait(std::unique_lock<std::mutex>&);
  void work();

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
