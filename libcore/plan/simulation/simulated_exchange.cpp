#include "libcore/plan/simulation/simulated_exchange.h"

#include <algorithm>
#include <utility>

#include "libcore/base/error.h"

namespace megalith {
namespace {

using Lines = std::map<LinkUse::Route, MessageLine>;

/// Repeats a rank's period as far as the messages that have been sent allow.
class PeriodPlayer {
 public:
  PeriodPlayer(const LinkPeriod& period, RankTimes& times, Lines& lines)
      : period_(period), times_(times), left_(period.times) {
    for (const LinkPeriod::Entry& entry : period.entries) lines_.push_back(&lines[entry.use.route]);
  }
  bool done() const { return left_ == 0; }
  /// False if nothing could be done.
  bool play() {
    bool moved = false;
    for (; !done() && use_link(); moved = true) advance();
    return moved;
  }

 private:
  bool use_link() {
    const LinkUse& use = period_.entries[at_].use;
    MessageLine& line = *lines_[at_];
    if (use.sends) {
      line.send(times_.clock, use.seconds, use.latency);
      return true;
    }
    if (line.empty()) return false;
    const double wait = std::max(line.receive() - times_.clock, 0.0);
    times_.clock += wait;
    times_.pipeline += wait;
    return true;
  }
  void advance() {
    if (++at_ == period_.entries.size()) {
      at_ = 0;
      --left_;
    }
    times_.add_work_of(period_.entries[at_].before);
  }

  const LinkPeriod& period_;
  RankTimes& times_;
  std::vector<MessageLine*> lines_;
  size_t at_ = 0;
  int64_t left_;
};

}  // namespace

void MessageLine::send(double now, double seconds, double latency) {
  free_ = std::max(free_, now) + seconds;
  arrivals_.push_back(free_ + latency);
}

double MessageLine::receive() {
  const double arrival = arrivals_.front();
  arrivals_.pop_front();
  return arrival;
}

void SimulatedExchange::send(const LinkUse& use, double now) {
  const std::scoped_lock lock(mutex_);
  lines_[use.route].send(now, use.seconds, use.latency);
  changed_.notify_all();
}

double SimulatedExchange::receive(const LinkUse& use) {
  std::unique_lock lock(mutex_);
  MessageLine& line = lines_[use.route];
  changed_.wait(lock, [&] { return failed_ || !line.empty(); });
  stop_if_failed();
  return line.receive();
}

void SimulatedExchange::repeat(const LinkPeriod& period, RankTimes& times) {
  std::unique_lock lock(mutex_);
  repeating_.push_back({period, times});
  if (static_cast<int>(repeating_.size()) == ranks_) {
    play_all();
    repeated_ = true;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return failed_ || repeated_; });
  stop_if_failed();
}

double SimulatedExchange::synchronize(double now) {
  std::unique_lock lock(mutex_);
  const int64_t round = round_;
  latest_ = std::max(latest_, now);
  if (++arrived_ == ranks_) {
    arrived_ = 0;
    synchronized_ = std::exchange(latest_, 0.0);
    ++round_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return failed_ || round_ != round; });
  stop_if_failed();
  return synchronized_;
}

void SimulatedExchange::fail() {
  const std::scoped_lock lock(mutex_);
  failed_ = true;
  changed_.notify_all();
}

void SimulatedExchange::play_all() {
  std::vector<PeriodPlayer> players;
  for (const Repeating& rank : repeating_) players.emplace_back(rank.period, rank.times, lines_);
  const auto done = [](const PeriodPlayer& player) { return player.done(); };
  while (!std::all_of(players.begin(), players.end(), done)) {
    bool moved = false;
    for (PeriodPlayer& player : players) moved |= player.play();
    if (!moved) throw Error(ErrorKind::kInternal, "simulation: the periods of the ranks wait for each other");
  }
}

void SimulatedExchange::stop_if_failed() const {
  if (failed_) throw Error(ErrorKind::kInternal, "simulation: another rank failed");
}

}  // namespace megalith
