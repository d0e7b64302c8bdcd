#pragma once

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "libcore/parallel/communicator.h"

namespace megalith {

// Clocks are in seconds since the beginning of a simulated step.

/// What a rank does with one link: it sends a message, or waits for one (`seconds` and `latency` are then not
/// used).
struct LinkUse {
  struct Route {
    GroupRole group;
    int from, to;
    auto operator<=>(const Route&) const = default;
  };
  Route route;
  bool sends;
  double seconds = 0, latency = 0;
};

/// A rank's times: its clock and what of it has been accounted for.
struct RankTimes {
  double clock = 0, work = 0, tensor = 0, pipeline = 0;

  void add_work_of(const RankTimes& other) {
    clock += other.clock;
    work += other.work;
    tensor += other.tensor;
  }
};

/// The uses of links in one period of the pipeline's steady state, each with the times since the use before
/// it. The times before the first use are those since the last use of the period before.
struct LinkPeriod {
  struct Entry {
    LinkUse use;
    RankTimes before;
  };
  std::vector<Entry> entries;
  int64_t times = 0;  // how often it is repeated
};

/// A link between two pipeline stages, in one direction.
class MessageLine {
 public:
  /// A message that leaves at `now`, occupies the link for `seconds` and arrives `latency` later.
  void send(double now, double seconds, double latency);
  bool empty() const { return arrivals_.empty(); }
  /// Removes the oldest message, which must be there, and returns the time at which it arrives.
  double receive();

 private:
  double free_ = 0;
  std::deque<double> arrivals_;
};

/// Passes simulated times between ranks, each on a thread of its own: when a message arrives, and when the
/// last rank has reached a barrier. If one rank fails, the calls in which the others wait fail with
/// kInternal.
class SimulatedExchange {
 public:
  explicit SimulatedExchange(int ranks) : ranks_(ranks) {}

  /// Sends a message at `now`.
  void send(const LinkUse& use, double now);
  /// Waits for the oldest message on the route and returns the time at which it arrives.
  double receive(const LinkUse& use);
  /// Waits until all ranks have arrived, and repeats all their periods. `times` then holds the times after
  /// the caller's last period. Once in a step. kInternal if the periods wait for each other.
  void repeat(const LinkPeriod& period, RankTimes& times);
  /// Waits until all ranks have arrived, and returns the latest of their clocks.
  double synchronize(double now);
  void fail();

 private:
  struct Repeating {  // a rank that waits in repeat()
    const LinkPeriod& period;
    RankTimes& times;
  };
  void play_all();
  void stop_if_failed() const;

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<LinkUse::Route, MessageLine> lines_;
  std::vector<Repeating> repeating_;
  bool repeated_ = false;
  int arrived_ = 0;
  int64_t round_ = 0;  // calls of synchronize() that have ended
  double latest_ = 0, synchronized_ = 0;
  bool failed_ = false;
};

}  // namespace megalith
