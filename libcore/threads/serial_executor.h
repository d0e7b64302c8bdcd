#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>

#include "libcore/threads/owned_thread.h"
#include "libcore/threads/shared_state.h"

namespace megalith {

/// A thread that runs jobs one after the other, in the order in which they were given. Jobs may wait for
/// disks or peers, so that the owner need not. After a job has thrown, no other job begins, and calls that
/// give a job or wait for one rethrow the first error. The lock of state() guards what jobs and their owner
/// share. All functions may be called from any thread.
class SerialExecutor {
 public:
  using Lock = SharedState::Lock;
  /// `what` names the thread by what it does ("the thread that reads samples"), for the message of a wait
  /// that takes too long; it must stay valid. `failed` is called, with the lock held, after a job has thrown.
  /// Throws std::system_error if the system has no more threads.
  explicit SerialExecutor(const char* what, std::function<void()> failed = {});
  /// Calls cancel() and waits for the running job, as OwnedThread does.
  ~SerialExecutor();
  SerialExecutor(const SerialExecutor&) = delete;
  SerialExecutor& operator=(const SerialExecutor&) = delete;

  /// The state that the jobs and their owner share. changed() is called on it after each job. Its error is
  /// the first one that a job threw.
  SharedState& state() const { return state_; }
  /// Adds a job. Neither the caller nor the job, when it starts, holds the lock. While the job runs, cancel()
  /// calls `give_up` from another thread to make it end soon.
  void give(std::function<void()> job, std::function<void()> give_up = {});
  /// Takes back the job that was given last, if it has not begun; the caller may run it or drop it.
  std::optional<std::function<void()>> take_back();
  /// The number of jobs given so far. It is also the number of the last job, for wait_for_job().
  uint64_t given() const;
  /// wait_for_job() waits until job `number` has ended, wait_for_jobs() until all jobs given so far have. The
  /// caller must not hold the lock.
  void wait_for_job(uint64_t number);
  void wait_for_jobs() { wait_for_job(given()); }

  /// Drops the jobs that have not begun and tells the running one to give up; does not throw. If there were
  /// any jobs and `error` is not null, later calls throw it.
  void cancel(const std::exception_ptr& error) noexcept;
  /// Waits until no job is left; does not throw. Destructors call it, so a job that takes longer than
  /// last_wait_limit() ends the process.
  void drain() noexcept;

 private:
  struct Job {
    std::function<void()> work, give_up;
  };

  void serve();
  void finish_job(const Lock&, const std::exception_ptr& error);

  const char* what_;
  std::function<void()> failed_;
  mutable SharedState state_;  // its lock guards everything below
  std::condition_variable work_;
  std::deque<Job> jobs_;  // the first one is running, or will run next
  uint64_t given_ = 0, done_ = 0;
  bool running_ = false, ended_ = false;
  OwnedThread thread_;
};

}  // namespace megalith
