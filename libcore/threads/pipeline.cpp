#include "libcore/threads/pipeline.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace megalith {
namespace {

/// How long a waiting thread polls: about as long as the source or the sink takes for an item that fits into
/// the caches.
constexpr std::chrono::microseconds kAwake{200};

}  // namespace

PipelineGate::PipelineGate(PipelineLimits limits, size_t weight)
    : limits_(limits),
      item_weight_(weight),
      weights_(limits.items),
      slots_(limits.items),
      done_(limits.items),
      users_(limits.items, limits.workers) {
  for (size_t slot = limits.items; slot-- > 0;) free_.push_back(slot);
}

std::optional<PipelineGate::Turn> PipelineGate::next(size_t worker) {
  std::unique_lock lock(mutex_);
  if (!awake_ && !turn_is_due()) wait_awake(lock);
  turns_.wait(lock, [this] { return turn_is_due(); });
  if (stopped_ || !(sink_is_due() || source_is_due())) return std::nullopt;
  return sink_is_due() ? begin_sink() : begin_filling(worker);
}

/// Polls for a turn for kAwake before the thread sleeps: most turns come sooner than a sleeping CPU wakes. On
/// a virtual machine an idle CPU also accrues steal time, so that the scheduler may queue the woken thread on
/// a busy CPU and leave it there: without polling, two workers shared one CPU for 10 to 60 ms in a tenth of
/// the runs. Only one thread at a time polls, so polling takes at most one CPU.
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
  return {true, left_, slots_[left_ % limits_.items]};
}

PipelineGate::Turn PipelineGate::begin_filling(size_t worker) {
  const size_t at = entered_ % limits_.items;
  filling_ = true;
  weights_[at] = item_weight_;
  weight_ += item_weight_;
  done_[at] = 0;
  slots_[at] = take_slot(worker);
  wake_one();
  return {false, entered_, slots_[at]};
}

/// Prefers the slot that this worker left last: its memory is in the caches of that core. Otherwise takes the
/// slot that any other worker left last. (Without this rule, with two workers, an item's memory was mostly in
/// the other core's caches or touched for the first time, which cost 3 % of preprocess's processor time.)
size_t PipelineGate::take_slot(size_t worker) {
  auto found =
      std::find_if(free_.rbegin(), free_.rend(), [&](size_t slot) { return users_[slot] == worker; });
  if (found == free_.rend()) found = free_.rbegin();
  const size_t slot = *found;
  free_.erase(std::next(found).base());
  users_[slot] = worker;
  return slot;
}

/// Each change that makes a turn due wakes one thread. That thread takes the turn and, if another one is due,
/// wakes the next thread, so that no thread wakes for nothing.
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
  const size_t at = entered_ % limits_.items;
  weight_ -= weights_[at];
  free_.push_back(slots_[at]);
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
  const size_t at = left_ % limits_.items;
  weight_ -= weights_[at];
  free_.push_back(slots_[at]);
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
