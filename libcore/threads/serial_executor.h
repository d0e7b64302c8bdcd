#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "libcore/threads/shared_state.h"

namespace megalith {

/// A thread that does jobs one after the other, in the order in which they were given. It waits for disks or
/// peers, so that its owner need not. After a job has thrown, no other one begins, and calls that give or
/// wait rethrow the first error. State that jobs and their owner share is kept under the lock of state().
/// Any thread may call.
class SerialExecutor {
 public:
  using Lock = SharedState::Lock;
  /// `failed` is called with the lock held after a job has thrown. std::system_error if there are no more
  /// threads.
  explicit SerialExecutor(std::function<void()> failed = {});
  ~SerialExecutor();  // cancel(), then waits for the running job
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  /// Changes after each job; its error is that of the first job that threw.
  SharedState& state() const { return state_; }
  /// Adds a job; the caller must not hold the lock, and the job starts without it. cancel() calls `give_up`
  /// from another thread to make the running job end soon.
  void give(std::function<void()> job, std::function<void()> give_up = {});
  /// Returns the last job if it has not begun; the caller may run it or drop it.
  std::optional<std::function<void()>> take_back();
  /// The number of jobs given, which is the number of the last one for wait_for_job().
  uint64_t given() const;
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
  void finish_job(const Lock&, const std::exception_ptr& error);

  std::function<void()> failed_;
  mutable SharedState state_;  // its lock guards everything below
  std::condition_variable work_;
  std::deque<Job> jobs_;  // the first one runs, or is the next to run
  uint64_t given_ = 0, done_ = 0;
  bool running_ = false, ended_ = false;
  std::thread thread_;
};

}  // namespace megalith
