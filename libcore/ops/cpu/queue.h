#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace megalith::cpu {

/// What a queue stream's native handle points to: work done in order by one thread, which opens no OpenMP
/// region. Any number of threads may add work and wait.
class Queue {
 public:
  /// The work added so far, to be waited for: everything up to this number.
  struct Ticket {
    Queue* queue;
    uint64_t number;
  };

  Queue();
  /// Completes the remaining work first, or drops it if an exception ends the owner, as Drain does.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// See Stream::enqueue.
  void put(std::function<void()> work, std::function<void()> give_up = {});
  /// The number of the work added last; 0 if there was none.
  uint64_t last();
  /// Waits until the work with this number is done.
  void wait(uint64_t number);
  /// See Stream::finish.
  void finish(bool drop) noexcept;

 private:
  struct Work {
    std::function<void()> run, give_up;
  };
  void serve();
  /// Keeps the first error and drops all work but what is running. The caller holds the mutex.
  void fail_with(const std::exception_ptr&);
  /// The oldest work, which stays at the front while it is running, so that finish() can tell it to give up;
  /// null when the queue ends.
  const Work* next();
  void rethrow_error() const {
    if (error_) std::rethrow_exception(error_);
  }

  std::mutex mutex_;
  std::condition_variable has_work_, is_done_;
  std::deque<Work> left_;
  uint64_t put_ = 0, done_ = 0;
  bool running_ = false, ending_ = false;
  std::exception_ptr error_;
  std::thread worker_;
};

}  // namespace megalith::cpu
