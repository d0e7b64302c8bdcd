#include "libcore/train/step/prefetch.h"

#include <utility>

#include "libcore/base/error.h"

namespace megalith {

Prefetch::~Prefetch() {
  if (!thread_.joinable()) return;
  {
    std::unique_lock lock(mutex_);
    cancel(lock);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetch::start(Job job) {
  {
    std::unique_lock lock(mutex_);
    cancel(lock);
    job_ = std::move(job);
    state_ = kGiven;
  }
  if (thread_.joinable())
    changed_.notify_all();
  else
    thread_ = std::thread([this] { work(); });
}

void Prefetch::finish() {
  std::unique_lock lock(mutex_);
  if (state_ == kIdle) fail(ErrorKind::kInternal, "prefetch: no job is started");
  if (state_ == kGiven) run_job(lock);
  changed_.wait(lock, [&] { return state_ == kDone; });
  state_ = kIdle;
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Prefetch::cancel(std::unique_lock<std::mutex>& lock) {
  cancelled_ = true;
  changed_.wait(lock, [&] { return state_ != kRunning; });
  cancelled_ = false;
  state_ = kIdle;
  error_ = nullptr;
}

void Prefetch::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || state_ == kGiven; });
    if (ending_) return;
    run_job(lock);
    changed_.notify_all();
  }
}

void Prefetch::run_job(std::unique_lock<std::mutex>& lock) {
  state_ = kRunning;
  Job job = std::exchange(job_, nullptr);
  lock.unlock();
  std::exception_ptr error;
  try {
    job(cancelled_);
  } catch (...) {  // the owner's: thrown again by finish()
    error = std::current_exception();
  }
  // Gives back what it holds before the owner goes on.
  job = nullptr;
  lock.lock();
  error_ = std::move(error);
  state_ = kDone;
}

}  // namespace megalith
