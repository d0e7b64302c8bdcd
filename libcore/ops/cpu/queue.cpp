#include "libcore/ops/cpu/queue.h"

#include <utility>

#include "libcore/ops/backend/backend.h"

namespace megalith::cpu {

Queue::Queue() : worker_([this] { serve(); }) {}

Queue::~Queue() {
  finish(std::uncaught_exceptions() > 0);
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    has_work_.notify_one();
  }
  worker_.join();
}

void Queue::finish(bool drop) noexcept {
  std::unique_lock lock(mutex_);
  if (drop && !left_.empty()) {
    fail_with(std::make_exception_ptr(
        Error(ErrorKind::kInternal, "cpu: a queue stream dropped its work, since an error ended its owner")));
    if (const std::function<void()> give_up = running_ ? left_.front().give_up : nullptr) {
      lock.unlock();
      give_up();
      lock.lock();
    }
  }
  is_done_.wait(lock, [&] { return left_.empty(); });
}

void Queue::fail_with(const std::exception_ptr& error) {
  if (!error_) error_ = error;
  left_.erase(left_.begin() + (running_ ? 1 : 0), left_.end());
}

void Queue::put(std::function<void()> work, std::function<void()> give_up) {
  const std::lock_guard lock(mutex_);
  rethrow_error();
  left_.push_back({std::move(work), std::move(give_up)});
  ++put_;
  has_work_.notify_one();
}

uint64_t Queue::last() {
  const std::lock_guard lock(mutex_);
  return put_;
}

void Queue::wait(uint64_t number) {
  std::unique_lock lock(mutex_);
  is_done_.wait(lock, [&] { return error_ || done_ >= number; });
  rethrow_error();
}

const Queue::Work* Queue::next() {
  std::unique_lock lock(mutex_);
  has_work_.wait(lock, [&] { return ending_ || !left_.empty(); });
  running_ = !left_.empty();
  return running_ ? &left_.front() : nullptr;
}

void Queue::serve() {
  set_cpu_threads(1);
  while (const Work* const work = next()) {
    std::exception_ptr error;
    try {
      work->run();
    } catch (...) {
      error = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    left_.pop_front();
    running_ = false;
    ++done_;
    if (error) fail_with(error);
    is_done_.notify_all();
  }
}

}  // namespace megalith::cpu
