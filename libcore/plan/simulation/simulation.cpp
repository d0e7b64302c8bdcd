#include "libcore/plan/simulation/simulation.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/rank_order.h"
#include "libcore/ops/dry/dry_backend.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/goal.h"
#include "libcore/plan/simulation/simulated_exchange.h"
#include "libcore/train/schedules/schedule.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/trainer.h"

namespace megalith {
namespace {

/// The step of a pipeline rank as far as it is repeated. Of a step of many microbatches, the trainer runs a
/// few. Between two of them the simulation repeats what the rank did with its links in the last period, which
/// is as many microbatches as there are stages, through all their chunks: each period takes the same ops in
/// the same order, and the simulation has only to find the times. `cut`: the number of uses before which that
/// happens. No rank's uses before its cut wait for another's after its own.
struct Repetition {
  size_t begin = 0, cut = 0;  // the period recorded: numbers of uses
  int64_t times = 0;          // 0: nothing is repeated
};

GroupTraffic& traffic_of(std::vector<GroupTraffic>& traffic, const std::string& group) {
  const auto found = std::ranges::find(traffic, group, &GroupTraffic::group);
  return found != traffic.end() ? *found : traffic.emplace_back(GroupTraffic{.group = group});
}

/// Counts what was exchanged since `before` another `times` times.
void repeat_since(std::vector<GroupTraffic> before, int64_t times, std::vector<GroupTraffic>& traffic) {
  for (GroupTraffic& one : traffic) {
    const GroupTraffic& former = traffic_of(before, one.group);
    one.calls += times * (one.calls - former.calls);
    one.bytes += times * (one.bytes - former.bytes);
  }
}

/// One simulated rank, and its times in the step so far.
struct SimulatedRank {
  const PlanProblem& problem;
  const Candidate& cut;
  SimulatedExchange& exchange;
  int stage;
  Repetition repetition = {};
  SimulatedStep step = {};
  size_t uses = 0;                // of links
  RankTimes last = {};            // after the last use
  const void* compute = nullptr;  // the stream whose clock is the step's; null until there is one
  LinkPeriod period = {};
  std::vector<GroupTraffic> before_period = {};
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
    count_sum(view, true);
    spend_sum(s, view.bytes(), 2);
  }
  void all_gather(Stream& s, View out, ConstView) override { call(s, out.bytes()); }
  void reduce_scatter(Stream& s, View, ConstView in, Reduce) override {
    count_sum(in, false);
    spend_sum(s, in.bytes());
  }
  void all_to_all(Stream& s, View out, ConstView) override { call(s, out.bytes()); }
  void broadcast(Stream& s, View view, int) override { call(s, view.bytes()); }
  void gather_parts(Stream& s, View whole, const Places& places) override {
    const size_t bytes = bytes_of(whole, places);
    count(bytes, places.last - places.first);
    spend_ring(s, bytes);
  }
  void reduce_parts(Stream& s, View whole, Reduce, const Places& places) override {
    const size_t bytes = bytes_of(whole, places);
    count_roots(bytes, places);
    spend_sum(s, bytes);
  }

  void set_send_slots(View, int) override {}
  void send(Stream& s, ConstView view, int peer) override {
    const LinkUse use{.route = {name_.role, place_.rank, peer},
                      .sends = true,
                      .seconds = static_cast<double>(view.bytes()) / place_.link.bandwidth,
                      .latency = place_.link.latency};
    before(s, use);
    count(view.bytes());
    self_.exchange.send(use, stream_clock(s));
    self_.last = times(s);
  }
  void recv(Stream& s, View, int peer) override {
    const LinkUse use{.route = {name_.role, peer, place_.rank}, .sends = false};
    before(s, use);
    const double wait = self_.exchange.receive(use) - stream_clock(s);
    spend(s, std::max(wait, 0.0));
    self_.last = times(s);
  }
  std::vector<std::string> exchange(std::string_view mine) override {
    return std::vector<std::string>(static_cast<size_t>(place_.size), std::string(mine));
  }
  std::unique_ptr<Communicator> split(const GroupName& name, int, int) override;
  void abort(const std::string&) override { self_.exchange.fail(); }

 private:
  /// A call that sends the group's tensor around a ring.
  void call(Stream& stream, size_t bytes) {
    count(bytes);
    spend_ring(stream, bytes);
  }
  void spend_ring(Stream& stream, size_t bytes, int rounds = 1) {
    spend(stream, rounds * ring_seconds(static_cast<double>(bytes), place_.size, place_.link));
  }
  /// A ring, and what adding takes longer in rank order.
  void spend_sum(Stream& stream, size_t bytes, int rounds = 1) {
    spend_ring(stream, bytes, rounds);
    spend(stream, ordered_sum_seconds(self_.problem, static_cast<double>(bytes), place_.size));
  }
  size_t bytes_of(const View& whole, const Places& places) const {
    return whole.bytes() / static_cast<size_t>(place_.size) * static_cast<size_t>(places.last - places.first);
  }
  /// Counts a reduction, after which all ranks get the sum or each a part of it.
  void count_sum(const ConstView& whole, bool spreads) {
    if (!self_.problem.sends_parts()) return count(whole.bytes());
    OrderedSends sends = ordered_parts_sent(whole.elements(), place_.rank, place_.size);
    if (spreads) sends = sends + ordered_sum_sent(whole.elements(), place_.rank, place_.size);
    count(static_cast<size_t>(sends.elements) * size_of(whole.dtype), sends.calls);
  }
  /// Counts reductions of `bytes` in all, each at another root: a call for each, and they run together. In
  /// rank order a root gets the tensors of the others and sends nothing.
  void count_roots(size_t bytes, const Places& places) {
    const int roots = places.last - places.first;
    if (!self_.problem.sends_parts()) return count(bytes, roots);
    const int others = roots - (places.contains(place_.rank) ? 1 : 0);
    count(bytes / static_cast<size_t>(roots) * static_cast<size_t>(others), others);
  }
  void count(size_t bytes, int64_t calls = 1) {
    if (place_.size == 1) return;
    GroupTraffic& traffic = traffic_of(self_.step.traffic, name_.text);
    traffic.calls += calls;
    traffic.bytes += static_cast<int64_t>(bytes);
  }
  void spend(Stream& stream, double seconds) {
    stream_clock(stream) += seconds;
    const bool beside = self_.compute != nullptr && stream.native() != self_.compute;
    if (place_.account && !beside) self_.step.*place_.account += seconds;
  }
  RankTimes times(Stream& stream) const {
    return {stream_clock(stream), self_.step.work, self_.step.tensor, self_.step.pipeline};
  }
  /// Records the use if it belongs to the period; at the cut, repeats the period first.
  void before(Stream& stream, const LinkUse& use) {
    const Repetition& repetition = self_.repetition;
    const size_t number = self_.uses++;
    if (repetition.times == 0 || number < repetition.begin || number > repetition.cut) return;
    RankTimes now = times(stream);
    if (number == repetition.begin) self_.before_period = self_.step.traffic;
    if (number < repetition.cut) {
      const RankTimes& last = self_.last;
      self_.period.entries.push_back({use,
                                      {.clock = now.clock - last.clock,
                                       .work = now.work - last.work,
                                       .tensor = now.tensor - last.tensor}});
      return;
    }
    repeat_since(self_.before_period, repetition.times, self_.step.traffic);
    self_.period.times = repetition.times;
    self_.exchange.repeat(self_.period, now);
    stream_clock(stream) = now.clock;
    self_.step.work = now.work;
    self_.step.tensor = now.tensor;
    self_.step.pipeline = now.pipeline;
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
  self.compute = trainer.stream().native();
  const double begun = stream_clock(trainer.stream());
  self.step = {};
  constexpr double kAnyRate = 1e-4;  // any learning rate: nothing is computed
  trainer.step(any_sample, 0, kAnyRate);
  trainer.params();  // counts the whole gather, part of which runs beside the next step
  self.step.seconds = stream_clock(trainer.stream()) - begun;
}

/// How often a step of the pipeline rank `stage` uses its links before its forward pass number `forward`.
size_t uses_before(const Candidate& c, int stage, int64_t forward) {
  const int last = c.pipeline * c.chunks - 1;
  size_t uses = 0;
  for (const Step& step :
       plan_pipeline(stage, c.pipeline, c.chunks, static_cast<int>(c.microbatches), c.pipeline)) {
    const int depth = step.chunk * c.pipeline + stage;
    if (step.kind == Step::kForward && forward-- == 0) break;
    uses += (depth > 0) + (depth < last);
  }
  return uses;
}

/// The repetition of a rank whose trainer runs `c` and whose pipeline repeats `times` periods. At the cut a
/// rank has begun one forward pass more than the next stage: then every message that a rank waits for before
/// its cut is sent before the sender's, also from the last stage's chunk to the first one's next, and back.
Repetition repetition_of(const Candidate& c, int stage, int64_t times) {
  const int64_t period = int64_t{c.pipeline} * c.chunks;
  const int64_t forward = 3 * period + c.pipeline - 1 - stage;
  return {.begin = uses_before(c, stage, forward - period),
          .cut = uses_before(c, stage, forward),
          .times = times};
}

/// Runs each rank on a thread of its own and returns when all have ended.
void run_ranks(std::vector<SimulatedRank>& ranks, const RunShape& run) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto fail = [&](const std::exception_ptr& error) {
    {
      const std::scoped_lock lock(mutex);
      if (!first) first = error;
    }
    ranks.front().exchange.fail();
  };
  {
    std::vector<std::jthread> threads;
    try {
      for (SimulatedRank& rank : ranks)
        threads.emplace_back([&] {
          try {
            run_rank(rank, run);
          } catch (...) {
            fail(std::current_exception());
          }
        });
    } catch (...) {  // the system has no more threads
      fail(std::current_exception());
    }
  }
  if (first) std::rethrow_exception(first);
}

/// The step of each pipeline stage of `c`, whose pipeline repeats `times` periods more.
std::vector<SimulatedStep> run_stages(const PlanProblem& p, const Candidate& c, int64_t times) {
  PretrainConfig config = trainer_configuration(p, c);
  config.parallel.finish();
  SimulatedExchange exchange(c.pipeline);
  std::vector<SimulatedRank> ranks;
  for (int stage = 0; stage < c.pipeline; ++stage) {
    ranks.push_back({.problem = p, .cut = c, .exchange = exchange, .stage = stage});
    if (times > 0) ranks.back().repetition = repetition_of(c, stage, times);
  }
  run_ranks(ranks, trainer_run(p, config));
  std::vector<SimulatedStep> steps;
  for (const SimulatedRank& rank : ranks) steps.push_back(rank.step);
  return steps;
}

/// `c` with another number of microbatches.
Candidate with_microbatches(Candidate c, int64_t microbatches) {
  c.microbatches = microbatches;
  c.global_batch = microbatches * c.micro_batch * c.data;
  return c;
}

/// A step without a pipeline: every microbatch but the last, which hides the sums of the gradients, takes the
/// same time.
std::vector<SimulatedStep> without_pipeline(const PlanProblem& p, const Candidate& c) {
  SimulatedStep step = run_stages(p, with_microbatches(c, 3), 0).front();
  const SimulatedStep shorter = run_stages(p, with_microbatches(c, 2), 0).front();
  repeat_since(shorter.traffic, c.microbatches - 3, step.traffic);
  const auto more = static_cast<double>(c.microbatches - 3);
  for (double SimulatedStep::*const part :
       {&SimulatedStep::seconds, &SimulatedStep::work, &SimulatedStep::tensor, &SimulatedStep::pipeline})
    step.*part += more * (step.*part - shorter.*part);
  return {step};
}

/// How many microbatches the trainer itself runs: five periods, of which the third is repeated, and the rest.
int64_t own_microbatches(const Candidate& c, Microbatches which) {
  const int64_t own = 5 * int64_t{c.pipeline} + c.microbatches % c.pipeline;
  return which == Microbatches::kEach ? c.microbatches : std::min(own, c.microbatches);
}

std::vector<SimulatedStep> simulate_stages(const PlanProblem& p, const Candidate& c, Microbatches which) {
  const int64_t own = own_microbatches(c, which);
  if (own == c.microbatches) return run_stages(p, c, 0);
  if (c.pipeline == 1) return without_pipeline(p, c);
  return run_stages(p, with_microbatches(c, own), (c.microbatches - own) / c.pipeline);
}

/// Why a step is not simulated though the trainer runs it: every stage runs its layers for every microbatch,
/// and holds the samples of all of them. Empty: it is.
std::string beyond_simulation(const PlanProblem& p, const Candidate& c, Microbatches which) {
  constexpr int64_t kMostPasses = 250000;
  constexpr double kMostBytes = int64_t{256} << 20;  // 23 stages of samples of 8,192 tokens
  // Bytes: the token, its label and its weight in the loss. For a GPU the step that is read ahead takes as
  // much again.
  constexpr double kOfToken = 12;
  const int64_t own = own_microbatches(c, which), passes = own * p.model.layers;
  const double tokens = static_cast<double>(c.micro_batch) * (p.model.seq_length / c.context),
               bytes = static_cast<double>(own * c.pipeline) * tokens * kOfToken;
  if (passes <= kMostPasses && bytes <= kMostBytes) return {};
  return concat("a simulation of ", c.pipeline, " stages would run ", passes, " layers and hold ",
                format_bytes(bytes), " of samples; at most ", kMostPasses, " and ", format_bytes(kMostBytes),
                " are simulated; ask for fewer stages (--pipeline-model-parallel-size)");
}

std::vector<GroupTraffic> sum_of(const std::vector<SimulatedStep>& steps) {
  std::vector<GroupTraffic> sum;
  for (const SimulatedStep& step : steps)
    for (const GroupTraffic& one : step.traffic) {
      GroupTraffic& all = traffic_of(sum, one.group);
      all.calls += one.calls;
      all.bytes += one.bytes;
    }
  return sum;
}

}  // namespace

SimulatedStep simulate_step(const PlanProblem& p, const Candidate& c, Microbatches which) {
  if (const TrainerAnswer trainer = ask_trainer(p, c); !trainer.refusal.empty())
    fail(ErrorKind::kUsage, "this layout cannot be simulated: ", trainer.refusal);
  if (const std::string beyond = beyond_simulation(p, c, which); !beyond.empty())
    fail(ErrorKind::kUsage, beyond);
  const std::vector<SimulatedStep> steps = simulate_stages(p, c, which);
  const auto by_work = [](const SimulatedStep& a, const SimulatedStep& b) { return a.work < b.work; };
  const auto by_time = [](const SimulatedStep& a, const SimulatedStep& b) { return a.seconds < b.seconds; };
  SimulatedStep step = *std::max_element(steps.begin(), steps.end(), by_work);
  step.seconds = std::max_element(steps.begin(), steps.end(), by_time)->seconds;
  step.traffic = sum_of(steps);
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
      world.reason = beyond_simulation(p, plan.candidate, Microbatches::kRepeated);
      if (!world.reason.empty()) break;
      world.plan = plan;
      world.step = simulate_step(p, plan.candidate);
      break;
    }
  }
  return out;
}

}  // namespace megalith
