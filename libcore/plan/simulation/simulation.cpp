#include "libcore/plan/simulation/simulation.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/ops/dry/dry_backend.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/goal.h"
#include "libcore/train/step/trainer.h"

namespace megalith {
namespace {

/// Passes simulated times between ranks: when a message arrives, and when the last rank has reached a
/// barrier. If one rank fails, the calls in which the others wait fail, too.
class Exchange {
 public:
  explicit Exchange(int ranks) : ranks_(ranks) {}

  struct Route {
    GroupRole group;
    int from, to;
    // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 reads it into the generated comparison
    auto operator<=>(const Route&) const = default;
  };
  /// Sends a message that leaves at `now`, occupies the link for `seconds` and arrives `latency` later.
  void send(const Route& route, double now, double seconds, double latency) {
    const std::scoped_lock lock(mutex_);
    double& free = busy_until_[route];
    free = std::max(free, now) + seconds;
    arrivals_[route].push_back(free + latency);
    changed_.notify_all();
  }
  /// Waits for the oldest message on the route and returns the time at which it arrives.
  double receive(const Route& route) {
    std::unique_lock lock(mutex_);
    std::deque<double>& arrivals = arrivals_[route];
    changed_.wait(lock, [&] { return failed_ || !arrivals.empty(); });
    stop_if_failed();
    const double arrival = arrivals.front();
    arrivals.pop_front();
    return arrival;
  }
  /// Waits until all ranks have arrived, and returns the latest of their clocks.
  double synchronize(double now) {
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
  void fail() {
    const std::scoped_lock lock(mutex_);
    failed_ = true;
    changed_.notify_all();
  }

 private:
  void stop_if_failed() const {
    if (failed_) throw Error(ErrorKind::kInternal, "simulation: another rank failed");
  }

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Route, double> busy_until_;
  std::map<Route, std::deque<double>> arrivals_;
  int arrived_ = 0;
  int64_t round_ = 0;  // calls of synchronize() that have ended
  double latest_ = 0, synchronized_ = 0;
  bool failed_ = false;
};

/// One simulated rank, and its times in the step so far.
struct SimulatedRank {
  const PlanProblem& problem;
  const Candidate& cut;
  Exchange& exchange;
  int stage;
  SimulatedStep step = {};
};

/// A group of ranks. The simulation runs only one of them, or one per pipeline stage; a call takes the time
/// that the link gives.
class SimulatedComm final : public Communicator {
 public:
  struct Place {
    int rank = 0, size = 1;
    Link link = {};
    double SimulatedStep::*account = nullptr;  // the part of the step to which the time of its calls is added
  };
  SimulatedComm(SimulatedRank& self, GroupName name, const Place& place)
      : self_(self), name_(std::move(name)), place_(place) {}

  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }
  const std::string& name() const override { return name_.text; }

  void all_reduce(Stream& s, View view, Reduce) override {
    if (name_.role == GroupRole::kWorld) {
      const double waited = self_.exchange.synchronize(stream_clock(s)) - stream_clock(s);
      stream_clock(s) += waited;
      self_.step.pipeline += waited;
    }
    spend(s, 2 * ring(view.bytes()));
  }
  void all_gather(Stream& s, View out, ConstView) override { spend(s, ring(out.bytes())); }
  void reduce_scatter(Stream& s, View, ConstView in, Reduce) override { spend(s, ring(in.bytes())); }
  void all_to_all(Stream& s, View out, ConstView) override { spend(s, ring(out.bytes())); }
  void broadcast(Stream& s, View view, int) override { spend(s, ring(view.bytes())); }

  void set_send_slots(View, int) override {}
  void send(Stream& s, ConstView view, int peer) override {
    const double seconds = static_cast<double>(view.bytes()) / place_.link.bandwidth;
    self_.exchange.send({name_.role, place_.rank, peer}, stream_clock(s), seconds, place_.link.latency);
  }
  void recv(Stream& s, View, int peer) override {
    const double wait = self_.exchange.receive({name_.role, peer, place_.rank}) - stream_clock(s);
    spend(s, std::max(wait, 0.0));
  }
  std::vector<std::string> exchange(std::string_view mine) override {
    return std::vector<std::string>(static_cast<size_t>(place_.size), std::string(mine));
  }
  std::unique_ptr<Communicator> split(const GroupName& name, int, int) override;
  void abort(const std::string&) override { self_.exchange.fail(); }

 private:
  double ring(size_t bytes) const {
    return ring_seconds(static_cast<double>(bytes), place_.size, place_.link);
  }
  void spend(Stream& stream, double seconds) {
    stream_clock(stream) += seconds;
    if (place_.account) self_.step.*place_.account += seconds;
  }

  SimulatedRank& self_;
  GroupName name_;
  Place place_;
};

SimulatedComm::Place place_at_ends(const SimulatedRank& self, const Link& link) {
  const bool end = self.stage == 0 || self.stage + 1 == self.cut.pipeline;
  const int size = end && self.cut.pipeline > 1 ? 2 : 1;
  return {size == 2 && self.stage > 0 ? 1 : 0, size, link};
}

/// The place of `self` in a group that parallel/groups.h requests.
SimulatedComm::Place place_of(const SimulatedRank& self, const GroupName& name) {
  const Candidate& c = self.cut;
  const PlanProblem& p = self.problem;
  const int stride = c.tensor * c.context * c.data;  // distance between the numbers of pipeline neighbours
  switch (name.role) {
    case GroupRole::kTensor:
      return {0, c.tensor, group_link(p, c.tensor, 1), &SimulatedStep::tensor};
    case GroupRole::kContext:
      return {0, c.context, group_link(p, c.context, c.tensor), &SimulatedStep::tensor};
    case GroupRole::kContextReversed:
      return {c.context - 1, c.context, group_link(p, c.context, c.tensor), &SimulatedStep::tensor};
    case GroupRole::kData:
      return {0, c.data * c.context, group_link(p, c.data * c.context, c.tensor)};
    case GroupRole::kPipelineForward:
    case GroupRole::kPipelineBackward:
      return {self.stage, c.pipeline, group_link(p, 2, stride), &SimulatedStep::pipeline};
    case GroupRole::kEmbedding:
      return place_at_ends(self, group_link(p, 2, stride * (c.pipeline - 1)));
    case GroupRole::kWorld:
    case GroupRole::kOther:
      break;
  }
  fail(ErrorKind::kInternal, "simulation: the group ", quote(name.text), " is not one of a run's");
}

std::unique_ptr<Communicator> SimulatedComm::split(const GroupName& name, int, int) {
  return std::make_unique<SimulatedComm>(self_, name, place_of(self_, name));
}

/// Fills a sample; the dry backend never reads its contents.
void any_sample(int64_t, const SampleView& out) {
  std::fill(out.tokens.begin(), out.tokens.end(), 0);
  std::fill(out.labels.begin(), out.labels.end(), 0);
  std::fill(out.loss_mask.begin(), out.loss_mask.end(), 1.0F);
}

/// Runs one training step of a stage's rank; its times count from the beginning of the step.
void run_rank(SimulatedRank& self, const RunShape& run) {
  const PlanProblem& p = self.problem;
  const auto backend = make_timed_backend([&](std::string_view op, const Cost& cost) {
    const double seconds = op_seconds(p, op, cost);
    if (op != "copy" && op != "fill" && op != "add") self.step.work += seconds;
    return seconds;
  });
  const int rank = self.stage * self.cut.tensor * self.cut.context * self.cut.data;
  SimulatedComm world(self, {"world", GroupRole::kWorld},
                      {rank, p.machine.world, group_link(p, p.machine.world, 1)});
  Trainer trainer(run, *backend, world);
  const double begun = stream_clock(trainer.stream());
  self.step = {};
  constexpr double kAnyRate = 1e-4;  // any learning rate: nothing is computed
  trainer.step(any_sample, 0, kAnyRate);
  self.step.seconds = stream_clock(trainer.stream()) - begun;
}

std::vector<SimulatedStep> run_stages(const PlanProblem& p, const Candidate& c, const RunShape& run) {
  Exchange exchange(c.pipeline);
  std::vector<SimulatedRank> ranks;
  for (int stage = 0; stage < c.pipeline; ++stage) ranks.push_back({p, c, exchange, stage});
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (SimulatedRank& rank : ranks)
    threads.emplace_back([&] {
      try {
        run_rank(rank, run);
      } catch (...) {
        {
          const std::scoped_lock lock(mutex);
          if (!first) first = std::current_exception();
        }
        exchange.fail();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
  std::vector<SimulatedStep> steps;
  for (const SimulatedRank& rank : ranks) steps.push_back(rank.step);
  return steps;
}

}  // namespace

SimulatedStep simulate_step(const PlanProblem& p, const Candidate& c) {
  if (const TrainerAnswer trainer = ask_trainer(p, c); !trainer.refusal.empty())
    fail(ErrorKind::kUsage, "this layout cannot be simulated: ", trainer.refusal);
  PretrainConfig config = trainer_configuration(p, c);
  config.parallel.finish();
  const std::vector<SimulatedStep> steps = run_stages(p, c, run_shape(config));
  const auto by_work = [](const SimulatedStep& a, const SimulatedStep& b) { return a.work < b.work; };
  const auto by_time = [](const SimulatedStep& a, const SimulatedStep& b) { return a.seconds < b.seconds; };
  SimulatedStep step = *std::max_element(steps.begin(), steps.end(), by_work);
  step.seconds = std::max_element(steps.begin(), steps.end(), by_time)->seconds;
  return step;
}

std::vector<int> simulated_worlds(const std::string& list) {
  std::vector<int> worlds;
  for (const std::string& word : split(list, ',')) {
    const auto devices = parse_int(trim(word));
    if (!devices || *devices < 1 || *devices > ParallelConfig::kMaxRanks)
      fail(ErrorKind::kUsage, "--simulate ", quote(list), ": ", quote(word),
           " is not a number of devices; wanted a list such as 64,1024,16384");
    worlds.push_back(static_cast<int>(*devices));
  }
  return worlds;
}

std::vector<SimulatedWorld> simulate_worlds(const PlanProblem& problem, const Fixed& fixed,
                                            const std::vector<int>& worlds) {
  constexpr size_t kPlans = 50;  // number of the best plans that are tried: if the trainer runs none of them,
                                 // it is taken to run no plan
  std::vector<SimulatedWorld> out;
  for (const int devices : worlds) {
    PlanProblem p = with_devices(problem, devices);
    SimulatedWorld& world = out.emplace_back(SimulatedWorld{.devices = devices});
    const SearchResult found = search_beside_saves(p, fixed, kPlans);
    world.reason = found.plans.empty() ? "no plan fits" : "the trainer runs none of the best plans";
    for (const Plan& plan : found.plans) {
      if (!ask_trainer(p, plan.candidate).refusal.empty()) continue;
      world.plan = plan;
      world.step = simulate_step(p, plan.candidate);
      world.reason.clear();
      break;
    }
  }
  return out;
}

}  // namespace megalith
