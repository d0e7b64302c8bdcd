#include "libcore/threads/serial_executor.h"

#include <utility>

#include "libcore/threads/last_wait.h"

namespace megalith {

SerialExecutor::SerialExecutor(const char* what, std::function<void()> failed)
    : what_(what), failed_(std::move(failed)), thread_(what, [this] { serve(); }) {}

SerialExecutor::~SerialExecutor() {
  cancel(nullptr);
  {
    const Lock held = state_.lock();
    ended_ = true;
  }
  work_.notify_one();
}

void SerialExecutor::give(std::function<void()> job, std::function<void()> give_up) {
  {
    const Lock held = state_.lock();
    state_.rethrow(held);
    jobs_.push_back({std::move(job), std::move(give_up)});
    ++given_;
  }
  work_.notify_one();
}

std::optional<std::function<void()>> SerialExecutor::take_back() {
  const Lock held = state_.lock();
  if (jobs_.size() == (running_ ? 1 : 0)) return std::nullopt;
  std::function<void()> job = std::move(jobs_.back().work);
  jobs_.pop_back();
  --given_;
  return job;
}

uint64_t SerialExecutor::given() const {
  const Lock held = state_.lock();
  return given_;
}

void SerialExecutor::wait_for_job(uint64_t number) {
  Lock held = state_.lock();
  state_.wait(held, [&] { return done_ >= number; });
}

void SerialExecutor::cancel(const std::exception_ptr& error) noexcept {
  Lock held = state_.lock();
  if (jobs_.empty()) return;
  state_.fail(held, error);
  jobs_.erase(jobs_.begin() + (running_ ? 1 : 0), jobs_.end());
  state_.changed();
  const std::function<void()> give_up = running_ ? jobs_.front().give_up : nullptr;
  held.unlock();
  if (give_up) give_up();
}

void SerialExecutor::drain() noexcept {
  Lock held = state_.lock();
  while (!jobs_.empty()) {
    const auto moved_on = [this, done = done_] { return jobs_.empty() || done_ != done; };
    if (!state_.wait_anyway(held, last_wait_limit(), moved_on)) end_late_process(what_);
  }
}

/// A job stays at the front of jobs_ while it runs, so that cancel() can tell it to give up. Elements of a
/// deque do not move when others are added.
void SerialExecutor::serve() {
  Lock held = state_.lock();
  while (true) {
    work_.wait(held, [this] { return ended_ || !jobs_.empty(); });
    if (ended_) return;
    running_ = true;
    Job& job = jobs_.front();
    held.unlock();
    std::exception_ptr error;
    try {
      job.work();
    } catch (...) {
      error = std::current_exception();
    }
    job.work = nullptr;  // frees what the job holds before waiting threads are told
    held.lock();
    finish_job(held, error);
  }
}

void SerialExecutor::finish_job(const Lock& held, const std::exception_ptr& error) {
  jobs_.pop_front();
  running_ = false;
  ++done_;
  state_.fail(held, error);
  if (error) {
    jobs_.clear();
    if (failed_) failed_();
  }
  state_.changed();
}

}  // namespace megalith
