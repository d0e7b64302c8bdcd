#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace megalith {

struct PipelineLimits {
  size_t workers = 1;
  size_t items = 4;                 // at most that many between source and sink
  size_t weight = size_t{1} << 24;  // and not more than that together, unless one alone is heavier
};

/// Where the stages of one pipeline meet: counts items from the source to the sink and keeps them in order.
/// Not used directly; see Pipeline. (Its own class so that it is compiled once, whatever the item.)
class PipelineGate {
 public:
  explicit PipelineGate(PipelineLimits limits)
      : limits_(limits), weights_(limits.items), done_(limits.items) {}

  /// Source: waits for a free place and for weight to be free; nothing once the pipeline stops. The place is
  /// item % limits.items.
  std::optional<uint64_t> enter(size_t weight);
  /// Source: makes the entered item heavier; false once the pipeline stops.
  bool grow(size_t weight);
  void ready();          // source: the entered item may be worked on
  void end_of_source();  // source: none follows; an entered item that is not ready does not count

  std::optional<uint64_t> take();  // worker: the next item in order; nothing when none will come
  void finish(uint64_t item);      // worker

  std::optional<uint64_t>
  wait_next();   // sink: the next item in order when it is finished; nothing at the end
  void leave();  // sink: that item is gone
  void stop();   // anybody: wakes everybody, nothing more begins

 private:
  bool room(size_t more) const { return weight_ == own_weight() || weight_ + more <= limits_.weight; }
  size_t own_weight() const { return inside_ ? weights_[entered_ % limits_.items] : 0; }
  PipelineLimits limits_;
  std::mutex mutex_;
  std::condition_variable source_, workers_, sink_;
  std::vector<size_t> weights_;
  std::vector<char> done_;
  uint64_t entered_ = 0, taken_ = 0,
           left_ = 0;  // numbers of the next item to become ready, to work on, to leave
  size_t weight_ = 0;
  bool inside_ = false;  // the source holds item entered_
  bool ended_ = false, stopped_ = false;
};

/// What the three stages of a pipeline do.
template <class Item>
struct PipelineStages {
  using Grow = std::function<void(size_t weight)>;
  /// Fills an item; false at the end of the data. Calls grow before the item becomes heavier than `weight`,
  /// or than what it last said; grow may wait, and throws through the source when the pipeline stops.
  std::function<bool(Item&, const Grow& grow)> source;
  std::function<void(size_t worker, Item&)> work;
  std::function<void(Item&)> sink;
  size_t weight = 1;                     // of an item, as long as grow is not called
  std::function<void()> interrupt = {};  // makes a source return that waits for something outside
};

/// Source -> workers -> sink. The source runs on a thread of its own, work on limits.workers threads, the
/// sink on the caller's thread; it gets the items in the source's order. Items are reused and keep their
/// memory.
///
/// What a stage throws is rethrown by run() when all threads have ended: from the sink at once, from source
/// and work when the sink would have got that item, so that of several errors the first in the data's order
/// wins.
template <class Item>
class Pipeline {
 public:
  Pipeline(PipelineLimits limits, PipelineStages<Item> stages)
      : limits_(limits), stages_(std::move(stages)), gate_(limits), places_(limits.items) {}

  void run() {
    const Threads threads(*this);
    while (const std::optional<uint64_t> number = gate_.wait_next()) {
      Place& place = place_of(*number);
      if (place.error) std::rethrow_exception(place.error);
      stages_.sink(place.item);
      gate_.leave();
    }
  }

 private:
  struct Place {
    Item item;
    std::exception_ptr error;
  };
  struct Stopped {};  // thrown through a source that waits in grow

  /// The threads of the stages; at the end of run() they are told to stop (they have, unless it failed) and
  /// joined.
  struct Threads {
    explicit Threads(Pipeline& owner) : pipeline(owner) {
      try {
        list.emplace_back([this] { pipeline.read(); });
        for (size_t i = 0; i < pipeline.limits_.workers; ++i)
          list.emplace_back([this, i] { pipeline.work(i); });
      } catch (...) {  // no more threads
        end();
        throw;
      }
    }
    ~Threads() { end(); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    void end() {
      pipeline.gate_.stop();
      if (pipeline.stages_.interrupt) pipeline.stages_.interrupt();
      for (std::thread& thread : list) thread.join();
    }
    Pipeline& pipeline;
    std::vector<std::thread> list;
  };

  Place& place_of(uint64_t number) { return places_[number % limits_.items]; }

  void read() {
    const auto grow = [this](size_t weight) {
      if (!gate_.grow(weight)) throw Stopped();
    };
    bool more = true;
    while (more) {
      const std::optional<uint64_t> number = gate_.enter(stages_.weight);
      if (!number) break;
      Place& place = place_of(*number);
      try {
        more = stages_.source(place.item, grow);
      } catch (const Stopped&) {
        break;
      } catch (...) {  // travels as an item to the sink
        place.error = std::current_exception();
        gate_.ready();
        break;
      }
      if (more) gate_.ready();
    }
    gate_.end_of_source();
  }

  void work(size_t worker) {
    while (const std::optional<uint64_t> number = gate_.take()) {
      Place& place = place_of(*number);
      try {
        if (!place.error) stages_.work(worker, place.item);
      } catch (...) {
        place.error = std::current_exception();
      }
      gate_.finish(*number);
    }
  }

  PipelineLimits limits_;
  PipelineStages<Item> stages_;
  PipelineGate gate_;
  std::vector<Place> places_;
};

}  // namespace megalith
