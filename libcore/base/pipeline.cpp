#include "libcore/base/pipeline.h"

namespace megalith {

std::optional<uint64_t> PipelineGate::enter(size_t weight) {
  std::unique_lock lock(mutex_);
  source_.wait(lock, [&] { return stopped_ || (entered_ - left_ < limits_.items && room(weight)); });
  if (stopped_) return std::nullopt;
  inside_ = true;
  weights_[entered_ % limits_.items] = weight;
  done_[entered_ % limits_.items] = 0;
  weight_ += weight;
  return entered_;
}

bool PipelineGate::grow(size_t weight) {
  std::unique_lock lock(mutex_);
  size_t& own = weights_[entered_ % limits_.items];
  if (weight <= own) return !stopped_;
  source_.wait(lock, [&] { return stopped_ || room(weight - own); });
  weight_ += weight - own;
  own = weight;
  return !stopped_;
}

void PipelineGate::ready() {
  const std::lock_guard lock(mutex_);
  inside_ = false;
  ++entered_;
  workers_.notify_one();
}

void PipelineGate::end_of_source() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  workers_.notify_all();
  sink_.notify_all();
}

std::optional<uint64_t> PipelineGate::take() {
  std::unique_lock lock(mutex_);
  workers_.wait(lock, [&] { return stopped_ || taken_ < entered_ || ended_; });
  if (stopped_ || taken_ == entered_) return std::nullopt;
  return taken_++;
}

void PipelineGate::finish(uint64_t item) {
  const std::lock_guard lock(mutex_);
  done_[item % limits_.items] = 1;
  if (item == left_) sink_.notify_one();
}

std::optional<uint64_t> PipelineGate::wait_next() {
  std::unique_lock lock(mutex_);
  sink_.wait(lock, [&] {
    return (left_ < entered_ && done_[left_ % limits_.items]) || (ended_ && left_ == entered_);
  });
  if (left_ == entered_) return std::nullopt;
  return left_;
}

void PipelineGate::leave() {
  const std::lock_guard lock(mutex_);
  weight_ -= weights_[left_ % limits_.items];
  ++left_;
  source_.notify_one();
}

void PipelineGate::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  source_.notify_all();
  workers_.notify_all();
}

}  // namespace megalith
