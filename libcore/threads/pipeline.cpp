#include "libcore/threads/pipeline.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace megalith {
namespace {

/// About what the source or the sink takes for an item that fits the caches.
constexpr std::chrono::microseconds kAwake{200};

}  // namespace

PipelineGate::PipelineGate(PipelineLimits limits, size_t weight)
    : limits_(limits),
      item_weight_(weight),
      weights_(limits.items),
      places_(limits.items),
      done_(limits.items),
      users_(limits.items, limits.workers) {
  for (size_t place = limits.items; place-- > 0;) free_.push_back(place);
}

std::optional<PipelineGate::Turn> PipelineGate::next(size_t worker) {
  std::unique_lock lock(mutex_);
  if (!awake_ && !turn_is_due()) wait_awake(lock);
  turns_.wait(lock, [this] { return turn_is_due(); });
  if (stopped_ || !(sink_is_due() || source_is_due())) return std::nullopt;
  return sink_is_due() ? begin_sink() : begin_filling(worker);
}

/// Most turns come soon. Who sleeps for so short a time leaves a CPU asleep that takes longer to wake, and on
/// a virtual one the scheduler may wake the thread behind another on its CPU instead, and leave it there.
void PipelineGate::wait_awake(std::unique_lock<std::mutex>& lock) {
  awake_ = true;
  for (const auto begin = std::chrono::steady_clock::now();
       !turn_is_due() && std::chrono::steady_clock::now() - begin < kAwake;) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  awake_ = false;
}

PipelineGate::Turn PipelineGate::begin_sink() {
  sinking_ = true;
  wake_one();
  return {true, left_, places_[left_ % limits_.items]};
}

PipelineGate::Turn PipelineGate::begin_filling(size_t worker) {
  const size_t slot = entered_ % limits_.items;
  filling_ = true;
  weights_[slot] = item_weight_;
  weight_ += item_weight_;
  done_[slot] = 0;
  places_[slot] = take_place(worker);
  wake_one();
  return {false, entered_, places_[slot]};
}

/// The last place left of those that the worker had, for its memory is in the caches of that core; else the
/// last one that anybody left.
size_t PipelineGate::take_place(size_t worker) {
  auto found =
      std::find_if(free_.rbegin(), free_.rend(), [&](size_t place) { return users_[place] == worker; });
  if (found == free_.rend()) found = free_.rbegin();
  const size_t place = *found;
  free_.erase(std::next(found).base());
  users_[place] = worker;
  return place;
}

/// Each change that makes a turn due wakes one thread, which takes one turn and wakes another for the next.
void PipelineGate::wake_one() {
  if (!awake_ && (sink_is_due() || source_is_due())) turns_.notify_one();
}

bool PipelineGate::grow(size_t weight, const std::function<void(const Turn&)>& sink) {
  std::unique_lock lock(mutex_);
  size_t& own = weights_[entered_ % limits_.items];
  if (weight <= own) return !stopped_;
  for (;;) {
    growth_.wait(lock, [&] { return stopped_ || room(weight - own) || sink_is_due(); });
    if (stopped_) return false;
    if (room(weight - own)) break;
    const Turn turn = begin_sink();
    lock.unlock();
    sink(turn);
    lock.lock();
  }
  weight_ += weight - own;
  own = weight;
  return true;
}

void PipelineGate::ready(bool last) {
  const std::lock_guard lock(mutex_);
  filling_ = false;
  ended_ = last;
  ++entered_;
  wake_one();
}

void PipelineGate::end_of_source() {
  const std::lock_guard lock(mutex_);
  const size_t slot = entered_ % limits_.items;
  weight_ -= weights_[slot];
  free_.push_back(places_[slot]);
  filling_ = false;
  ended_ = true;
  turns_.notify_all();
}

void PipelineGate::finish(uint64_t item) {
  const std::lock_guard lock(mutex_);
  done_[item % limits_.items] = 1;
}

void PipelineGate::leave() {
  const std::lock_guard lock(mutex_);
  const size_t slot = left_ % limits_.items;
  weight_ -= weights_[slot];
  free_.push_back(places_[slot]);
  ++left_;
  sinking_ = false;
  growth_.notify_one();
  if (at_end())
    turns_.notify_all();
  else
    wake_one();
}

void PipelineGate::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  turns_.notify_all();
  growth_.notify_one();
}

}  // namespace megalith
