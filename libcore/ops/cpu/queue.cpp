#include "libcore/ops/cpu/queue.h"

#include <utility>

#include "libcore/ops/backend.h"

namespace megalith::cpu {

Queue::Queue() : worker_([this] { serve(); }) {}

Queue::~Queue() {
  std::function<void()> give_up;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    if (std::uncaught_exceptions() > 0) {
      if (running_) give_up = left_.front().give_up;
      left_.erase(left_.begin() + (running_ ? 1 : 0), left_.end());
    }
    has_work_.notify_one();
  }
  if (give_up) give_up();
  worker_.join();
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
    if (error) {
      error_ = error;
      left_.clear();
    }
    is_done_.notify_all();
  }
}

}  // namespace megalith::cpu
