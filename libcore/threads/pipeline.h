#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "libcore/threads/owned_thread.h"

namespace megalith {

struct PipelineLimits {
  size_t workers = 1;               // threads, including the caller's
  size_t items = 4;                 // maximum number of items between source and sink
  size_t weight = size_t{1} << 24;  // maximum weight of these items together; a heavier item is let in alone
};

/// Coordinates the threads of a pipeline: counts items from the source to the sink and keeps them in order.
/// Not used directly; see Pipeline. (It is not part of the template, so that it is compiled only once for all
/// item types.)
class PipelineGate {
 public:
  /// What a thread does next: fill an item and work on it, or take a finished one through the sink.
  struct Turn {
    bool sink;
    uint64_t item;  // number of the item, from 0
    size_t slot;    // where the item is kept, in [0, limits.items)
  };

  /// `weight`: the weight of an item when a thread begins to fill it.
  PipelineGate(PipelineLimits limits, size_t weight);

  std::optional<Turn> next(size_t worker);  // waits for the next turn; nothing: no more turns
  void ready(bool last);                    // the item is filled; the next one may be filled unless `last`
  void end_of_source();                     // the item was not filled: the data has ended
  void finish(uint64_t item);               // the item has been worked on
  void leave();                             // the item has been through the sink
  void stop();                              // wakes all threads; nothing more begins

  /// For the thread that fills an item. Waits until the item may have this weight; false if the pipeline
  /// stops. If a sink turn comes up during the wait, calls `sink` with that turn, since there may be no other
  /// thread to take it.
  bool grow(size_t weight, const std::function<void(const Turn&)>& sink);

 private:
  bool room(size_t more) const { return weight_ == own_weight() || weight_ + more <= limits_.weight; }
  size_t own_weight() const { return filling_ ? weights_[entered_ % limits_.items] : 0; }
  bool sink_is_due() const { return !sinking_ && left_ < entered_ && done_[left_ % limits_.items]; }
  bool source_is_due() const {
    return !filling_ && !ended_ && entered_ - left_ < limits_.items && room(item_weight_);
  }
  bool at_end() const { return ended_ && left_ == entered_; }
  bool turn_is_due() const { return stopped_ || sink_is_due() || source_is_due() || at_end(); }
  void wait_awake(std::unique_lock<std::mutex>& lock);
  Turn begin_sink();
  Turn begin_filling(size_t worker);
  size_t take_slot(size_t worker);
  void wake_one();

  PipelineLimits limits_;
  size_t item_weight_;
  std::mutex mutex_;
  std::condition_variable turns_, growth_;
  // These are indexed by item % limits_.items.
  std::vector<size_t> weights_, slots_;
  std::vector<char> done_;
  std::vector<size_t> free_;         // free slots, the one that has been free longest first
  std::vector<size_t> users_;        // by slot: the worker that had it last
  uint64_t entered_ = 0, left_ = 0;  // numbers of the next item to become ready and of the next one to leave
  size_t weight_ = 0;
  bool filling_ = false, sinking_ = false;  // whether a thread is filling an item; whether one is in the sink
  bool ended_ = false, stopped_ = false;
  bool awake_ = false;  // a waiting thread polls for its turn
};

/// The three stages of a pipeline.
template <class Item>
struct PipelineStages {
  using Grow = std::function<void(size_t weight)>;
  /// Fills an item; returns false at the end of the data. Before the item becomes heavier than `weight`, or
  /// than the w of the last call of grow(w), the source must call grow(w) with the new weight. grow may wait.
  /// If the pipeline stops, grow throws, and the source must let the exception pass.
  std::function<bool(size_t worker, Item&, const Grow& grow)> source;
  std::function<void(size_t worker, Item&)> work;
  std::function<void(Item&)> sink;
  size_t weight = 1;                     // weight of an item for which the source does not call grow
  std::function<void()> interrupt = {};  // when the pipeline stops, makes a waiting source return
};

/// Source -> work -> sink. Each of limits.workers threads, the caller's among them, does whatever is due. A
/// thread fills an item and works on it at once, while it is in this core's caches; when the item is next in
/// order, a thread takes it through the sink. One thread at a time is in the source and one in the sink, so
/// neither needs locks of its own; the sink gets the items in the source's order. Items are reused and keep
/// their memory, so a long run allocates nothing.
///
/// When all threads have ended, run() rethrows the error of the stage that failed. An error of the sink stops
/// the pipeline at once. An error of the source or the work stops it when the item would have reached the
/// sink, so that of several errors the first one in the order of the data is rethrown.
template <class Item>
class Pipeline {
 public:
  Pipeline(PipelineLimits limits, PipelineStages<Item> stages)
      : limits_(limits), stages_(std::move(stages)), gate_(limits, stages_.weight), slots_(limits.items) {}

  void run() {
    {
      const Threads threads(*this);
      serve(0);
    }
    if (error_) std::rethrow_exception(error_);
  }

 private:
  using Turn = PipelineGate::Turn;
  // Aligned, since different threads work on neighbouring slots: sharing a cache line cost two workers up to
  // 8 % of their time on short documents.
  struct alignas(64) ItemSlot {
    Item item;
    std::exception_ptr error;
  };
  struct Stopped {};  // thrown by grow, through the source, when the pipeline stops

  /// All threads but the caller's. They end when there are no more turns.
  struct Threads {
    explicit Threads(Pipeline& pipeline) {
      try {
        for (size_t i = 1; i < pipeline.limits_.workers; ++i)
          list.emplace_back("a thread of a pipeline", [&pipeline, i] { pipeline.serve(i); });
      } catch (...) {  // the system has no more threads
        pipeline.stop();
        throw;
      }
    }
    std::deque<OwnedThread> list;
  };

  void serve(size_t worker) {
    while (const std::optional<Turn> turn = gate_.next(worker)) {
      if (turn->sink)
        sink(*turn);
      else
        fill(*turn, worker);
    }
  }

  void fill(const Turn& turn, size_t worker) {
    ItemSlot& slot = slots_[turn.slot];
    const auto grow = [this](size_t weight) {
      if (!gate_.grow(weight, [this](const Turn& to_sink) { sink(to_sink); })) throw Stopped();
    };
    bool more = true;
    try {
      more = stages_.source(worker, slot.item, grow);
    } catch (const Stopped&) {
      return;
    } catch (...) {  // the error travels to the sink in the item's place
      slot.error = std::current_exception();
    }
    if (!more) return gate_.end_of_source();
    gate_.ready(slot.error != nullptr);
    try {
      if (!slot.error) stages_.work(worker, slot.item);
    } catch (...) {
      slot.error = std::current_exception();
    }
    gate_.finish(turn.item);
  }

  void sink(const Turn& turn) {
    ItemSlot& slot = slots_[turn.slot];
    try {
      if (slot.error) std::rethrow_exception(slot.error);
      stages_.sink(slot.item);
    } catch (...) {
      error_ = std::current_exception();
      return stop();
    }
    gate_.leave();
  }

  void stop() {
    gate_.stop();
    if (stages_.interrupt) stages_.interrupt();
  }

  PipelineLimits limits_;
  PipelineStages<Item> stages_;
  PipelineGate gate_;
  std::vector<ItemSlot> slots_;
  std::exception_ptr error_;  // the error that run() rethrows
};

}  // namespace megalith
