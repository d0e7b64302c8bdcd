#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace megalith {

/// A thread that does jobs one after the other, in the order in which they were given. It waits for disks or
/// peers, so that its owner need not. After a job has thrown, no other one begins, and calls that give or
/// wait rethrow the first error. State that jobs and their owner share is kept under lock(). Any thread may
/// call.
class SerialExecutor {
 public:
  using Lock = std::unique_lock<std::mutex>;
  /// `failed` is called with the lock held after a job has thrown. std::system_error if there are no more
  /// threads.
  explicit SerialExecutor(std::function<void()> failed = {});
  ~SerialExecutor();  // cancel(), then waits for the running job
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  Lock lock() const { return Lock(mutex_); }
  /// Adds a job; the caller must not hold the lock, and the job starts without it. cancel() calls `give_up`
  /// from another thread to make the running job end soon.
  void give(std::function<void()> job, std::function<void()> give_up = {});
  /// Returns the last job if it has not begun; the caller may run it or drop it.
  std::optional<std::function<void()>> take_back();
  /// The number of jobs given, which is the number of the last one for wait_for_job().
  uint64_t given() const;

  /// Waits until `ready()` holds. It is called with the lock held, after each job and each changed().
  template <class Ready>
  void wait(Lock& lock, const Ready& ready) {
    changed_.wait(lock, [&] { return error_ || ready(); });
    rethrow_error();
  }
  /// As wait(), but not longer than `limit`. Returns whether it is ready.
  template <class Ready>
  bool wait_for(Lock& lock, std::chrono::milliseconds limit, const Ready& ready) {
    const bool in_time = changed_.wait_for(lock, limit, [&] { return error_ || ready(); });
    rethrow_error();
    return in_time;
  }
  void changed() { changed_.notify_all(); }
  bool failed(const Lock&) const { return error_ != nullptr; }
  /// Waits for the job of this number, or for all jobs given; not with the lock.
  void wait_for_job(uint64_t number);
  void wait_for_jobs() { wait_for_job(given()); }

  /// Drops the jobs that have not begun and tells the running one to give up; does not throw. If there were
  /// any and `error` is not null, later calls throw it.
  void cancel(const std::exception_ptr& error) noexcept;
  /// Waits until no job is left; does not throw.
  void drain() noexcept;

 private:
  struct Job {
    std::function<void()> work, give_up;
  };

  void serve();
  void finish_job(const std::exception_ptr& error);
  void drop_waiting() { jobs_.erase(jobs_.begin() + (running_ ? 1 : 0), jobs_.end()); }
  void rethrow_error() const {
    if (error_) std::rethrow_exception(error_);
  }

  std::function<void()> failed_;
  mutable std::mutex mutex_;
  std::condition_variable work_, changed_;
  std::deque<Job> jobs_;  // the first one runs, or is the next to run
  uint64_t given_ = 0, done_ = 0;
  bool running_ = false, ended_ = false;
  std::exception_ptr error_;  // the first one
  std::thread thread_;
};

}  // namespace megalith
