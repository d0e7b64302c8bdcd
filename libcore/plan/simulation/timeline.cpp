#include "libcore/plan/simulation/timeline.h"

#include <algorithm>
#include <limits>

#include "libcore/base/error.h"
#include "libcore/json/json.h"
#include "libcore/train/step/run_trace.h"

namespace megalith {
namespace {

class Player {
 public:
  Player(const PlanProblem& p, const Plan& plan, int microbatches)
      : p_(p), c_(plan.candidate), price_(price_layer(p, shape_of(c_))), microbatches_(microbatches) {
    const size_t count = static_cast<size_t>(c_.pipeline) * static_cast<size_t>(c_.chunks * microbatches);
    forward_.assign(count, kNever);
    backward_.assign(count, kNever);
    for (int stage = 0; stage < c_.pipeline; ++stage)
      orders_.push_back(plan_pipeline(stage, c_.pipeline, c_.chunks, microbatches, c_.pipeline));
  }

  std::vector<PlayedStep> play() {
    std::vector<size_t> next(orders_.size(), 0);
    std::vector<double> free(orders_.size(), 0);
    std::vector<PlayedStep> out;
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t stage = 0; stage < orders_.size(); ++stage)
        while (next[stage] < orders_[stage].size()) {
          const Step& step = orders_[stage][next[stage]];
          const double ready = needed(static_cast<int>(stage), step);
          if (ready == kNever) break;
          PlayedStep at{static_cast<int>(stage), step, std::max(ready, free[stage]), 0};
          at.end = free[stage] = at.begin + seconds(at.stage, step);
          done(at);
          out.push_back(at);
          ++next[stage];
          moved = true;
        }
    }
    return out;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  size_t place(int stage, int chunk, int microbatch) const {
    return (static_cast<size_t>(chunk) * static_cast<size_t>(c_.pipeline) + static_cast<size_t>(stage)) *
               static_cast<size_t>(microbatches_) +
           static_cast<size_t>(microbatch);
  }
  /// The time at which a step's input from its neighbour in the chain of chunks is available.
  double needed(int stage, const Step& step) const {
    const int here = step.chunk * c_.pipeline + stage, last = c_.chunks * c_.pipeline - 1;
    const auto at = [&](const std::vector<double>& times, int at_chain) {
      return times[place(at_chain % c_.pipeline, at_chain / c_.pipeline, step.microbatch)];
    };
    if (step.kind == Step::kForward) return here == 0 ? 0 : at(forward_, here - 1);
    const double own = at(forward_, here);
    return here == last ? own : std::max(own, at(backward_, here + 1));
  }
  double seconds(int stage, const Step& step) const {
    const Layout::Kind kind = stage_kind(p_, c_, price_, stage);
    const LayerCost& layer = kind.layer(price_);
    const double layers = static_cast<double>(kind.layers) / c_.chunks;
    const double forward = layers * (layer.forward + layer.forward_comm + layer.forward_exchange);
    const int here = step.chunk * c_.pipeline + stage;
    const bool head = here == c_.chunks * c_.pipeline - 1;
    constexpr double kForwardOfHead = 1.0 / 3;
    if (step.kind == Step::kForward) return forward + (head ? kForwardOfHead * price_.head : 0);
    const double whole = stage_seconds(c_, price_, kind) - (stage == c_.pipeline - 1 ? price_.head : 0);
    return whole / c_.chunks - forward + (head ? (1 - kForwardOfHead) * price_.head : 0);
  }
  void done(const PlayedStep& at) {
    auto& times = at.step.kind == Step::kForward ? forward_ : backward_;
    times[place(at.stage, at.step.chunk, at.step.microbatch)] = at.end;
  }

  const PlanProblem& p_;
  const Candidate& c_;
  const LayerPrice price_;
  const int microbatches_;
  std::vector<std::vector<Step>> orders_;
  std::vector<double> forward_, backward_;  // when each step is done
};

}  // namespace

std::vector<PlayedStep> play_pipeline(const PlanProblem& p, const Plan& plan, int64_t microbatches) {
  const Candidate& c = plan.candidate;
  int64_t count = std::min(microbatches, c.microbatches);
  // Interleaved schedules need whole groups of `pipeline` microbatches.
  if (c.chunks > 1) count = std::max<int64_t>(c.pipeline, count / c.pipeline * c.pipeline);
  return Player(p, plan, static_cast<int>(count)).play();
}

std::string chrome_trace(const std::vector<PlayedStep>& played) {
  Json events = Json::array(), root = Json::object();
  for (const PlayedStep& at : played) {
    const char* const category = at.step.kind == Step::kForward ? "forward" : "backward";
    events.push_back(to_json(TraceEvent{.name = concat(at.step),
                                        .category = category,
                                        .begin_us = at.begin * 1e6,
                                        .us = (at.end - at.begin) * 1e6,
                                        .thread = at.stage}));
  }
  root.set("traceEvents", std::move(events));
  return root.dump() + '\n';
}

}  // namespace megalith
