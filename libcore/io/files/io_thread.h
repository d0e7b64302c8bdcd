#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace megalith {

/// A thread that waits for a disk, so that its owner need not: it does jobs one after the other, in the order
/// in which they were given. What its jobs and its owner both touch is kept under lock().
class IoThread {
 public:
  using Lock = std::unique_lock<std::mutex>;
  /// `failed` is called with the lock when a job threw. std::system_error when there are no more threads.
  explicit IoThread(std::function<void()> failed = {});
  ~IoThread();  // waits for the job that runs; those that have not begun are dropped
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  Lock lock() const { return Lock(mutex_); }
  struct Job {
    std::function<void()> work;       // without the lock
    std::function<void()> done = {};  // after it, with the lock
  };
  /// Hands over a job; the caller must not hold the lock. After a job that threw no other one is begun.
  void give(Job job);
  /// Until `ready()` holds, which is asked with the lock, after each job and each changed(). Rethrows what a
  /// job threw.
  template <class Ready>
  void wait(Lock& lock, const Ready& ready) {
    changed_.wait(lock, [&] { return error_ || ready(); });
    if (error_) std::rethrow_exception(error_);
  }
  /// The same for so long at most; whether it is ready.
  template <class Ready>
  bool wait_for(Lock& lock, std::chrono::milliseconds limit, const Ready& ready) {
    const bool in_time = changed_.wait_for(lock, limit, [&] { return error_ || ready(); });
    if (error_) std::rethrow_exception(error_);
    return in_time;
  }
  void wait_for_jobs();  // all that were given; not with the lock
  void changed() { changed_.notify_all(); }
  bool failed(const Lock&) const { return error_ != nullptr; }

 private:
  void serve();

  std::function<void()> failed_;
  mutable std::mutex mutex_;
  std::condition_variable work_, changed_;
  std::deque<Job> jobs_;  // the first one is being done
  bool ended_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace megalith
