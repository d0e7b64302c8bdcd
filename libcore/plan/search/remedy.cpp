#include "libcore/plan/search/remedy.h"

#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/price/trainer.h"
#include "libcore/plan/search/goal.h"
#include "libcore/train/step/memory_limits.h"

namespace megalith {
namespace {

/// A command: what it plans, and what it fixes.
struct Asked {
  PlanProblem problem;
  Fixed fixed;
};

/// A change of one option. apply() returns false if the command already has the option. words() returns the
/// option as it is on a command line, with the value that the plan found after the change has; empty if the
/// plan has no such option.
struct Change {
  std::function<bool(Asked&)> apply;
  std::function<std::string(const PlanProblem&, const Candidate&)> words;
};

/// Leaves a choice open that the command fixes.
template <class T>
bool opened(std::optional<T>& choice) {
  const bool fixed = choice.has_value();
  choice.reset();
  return fixed;
}

/// Leaves the pipeline's size open, unless the command says more of the pipeline: its chunks, the layers of
/// its ends or a table of stages would stand beside another size and contradict it.
bool open_pipeline(Asked& asked) {
  Fixed& f = asked.fixed;
  if (f.chunks || f.first_layers || f.last_layers || f.counts_embedding || f.counts_head ||
      !asked.problem.stage_layers.empty())
    return false;
  return opened(f.pipeline);
}

bool open_recomputation(Asked& asked) {
  const bool fixed = opened(asked.fixed.recompute);
  asked.fixed.recompute_layers.reset();
  return fixed;
}

bool multiply_devices(Asked& asked, int times) {
  const int64_t devices = int64_t{asked.problem.machine.world} * times;
  if (devices > ParallelConfig::kMaxRanks) return false;
  asked.problem = with_devices(asked.problem, static_cast<int>(devices));
  if (asked.fixed.data) *asked.fixed.data *= times;
  return true;
}

bool keep_no_scores(Asked& asked) {
  AttentionKernel& kernel = asked.problem.software.attention;
  const bool kept = keeps_scores(kernel);
  kernel = AttentionKernel::kFlash2;
  return kept && asked.problem.machine.device.flash;
}

bool halve_gradients(Asked& asked) {
  PlanProblem& p = asked.problem;
  const bool wide = p.half() && p.machine.device.bfloat16 && !p.trained_here && p.software.gradient_bytes > 2;
  p.software.gradient_bytes = 2;
  return wide;
}

bool expand_segments(Asked& asked) {
  PlanProblem& p = asked.problem;
  const bool cuts = p.machine.device.multiprocessors > 0 && !p.software.expandable_segments;
  p.software.expandable_segments = true;
  return cuts;
}

bool save_without_copy(Asked& asked) {
  const bool needed = asked.problem.needs_save_copy;
  asked.problem.needs_save_copy = false;
  asked.problem.save_copy = SaveCopy::kNone;
  return needed;
}

/// The words of a change that is always the same option.
auto always(const char* option) {
  return [option](const PlanProblem&, const Candidate&) { return std::string(option); };
}

/// The words of a choice that the change leaves to the search: those of the plan's options that express it.
auto chosen(std::set<std::string> names) {
  return [names = std::move(names)](const PlanProblem& p, const Candidate& c) {
    std::string out;
    for (const LaunchOption& option : cut_options(p, c, p.trained_here))
      if (names.contains(option.name))
        out += concat(out.empty() ? "--" : " --", option.name, option.value.empty() ? "" : " ", option.value);
    return out;
  };
}

std::string data_ranks(const PlanProblem&, const Candidate& c) {
  return concat("--data-parallel-size ", c.data);
}

std::string all_devices(const PlanProblem& p, const Candidate&) {
  return concat("--world-size ", p.machine.world);
}

template <class T>
auto opens(std::optional<T> Fixed::*choice) {
  return [choice](Asked& asked) { return opened(asked.fixed.*choice); };
}

std::vector<Change> changes() {
  return {
      {save_without_copy, always("--no-async-save")},
      {halve_gradients, always("--grad-reduce-in-bf16")},
      {expand_segments, always("--expandable-segments")},
      {keep_no_scores, always("--attention-kernel flash2")},
      {opens(&Fixed::micro_batch), chosen({"micro-batch-size"})},
      {opens(&Fixed::sequence), chosen({"sequence-parallel"})},
      {open_recomputation,
       chosen({"recompute-granularity", "recompute-method", "recompute-num-layers", "recompute-modules"})},
      {opens(&Fixed::sharding), chosen({"use-distributed-optimizer", "sharding", "use-megatron-fsdp",
                                        "data-parallel-sharding-strategy"})},
      {opens(&Fixed::tensor), chosen({"tensor-model-parallel-size"})},
      {opens(&Fixed::context), chosen({"context-parallel-size"})},
      {open_pipeline, chosen({"pipeline-model-parallel-size", "num-layers-per-virtual-pipeline-stage",
                              "pipeline-layers", "decoder-first-pipeline-num-layers",
                              "decoder-last-pipeline-num-layers", "account-for-embedding-in-pipeline-split",
                              "account-for-loss-in-pipeline-split", "pipeline-model-parallel-layout"})},
      {opens(&Fixed::data), data_ranks},
      {opens(&Fixed::expert), chosen({"expert-model-parallel-size"})},
      {opens(&Fixed::expert_tensor), chosen({"expert-tensor-parallel-size"})}};
}

std::vector<Change> multiples_of_devices() {
  std::vector<Change> out;
  for (const int times : {2, 4, 8, 16})
    out.push_back({[times](Asked& a) { return multiply_devices(a, times); }, all_devices});
  return out;
}

/// What a remedy does to the plan that did not fit.
std::string words_of_remedy(const PlanProblem& p, const Plan& base, const Remedy& remedy) {
  const double freed = base.memory.estimate.needed() - remedy.plan.memory.estimate.needed();
  const double time = base.tokens_per_second(p) / remedy.plan.tokens_per_second(remedy.problem) - 1;
  return concat(remedy.options, ": frees ", gigabytes(freed), " GB, ", time < 0 ? "saves " : "costs ",
                format_fixed(100 * std::abs(time), 1), " % of time");
}

/// Tries changes of one command and keeps the one with the fastest plan.
class Trial {
 public:
  Trial(Asked asked, const Plan& base) : asked_(std::move(asked)), base_(base) {}

  std::optional<Remedy> found() {
    for (const auto& tried :
         {&Trial::single_options, &Trial::pairs, &Trial::more_devices, &Trial::options_on_more_devices}) {
      priced_ = 0;
      if (!best_) (this->*tried)();
    }
    if (best_) best_->words = words_of_remedy(asked_.problem, base_, *best_);
    return std::move(best_);
  }

 private:
  /// Candidates after which a step tries no more changes, so that an answer takes seconds at most.
  static constexpr int64_t kMostPriced = 2'000'000;

  void single_options() {
    for (const Change& change : all_) look({&change});
  }
  void pairs() {
    for (size_t i = 0; i < all_.size(); ++i)
      for (size_t j = i + 1; j < all_.size(); ++j) look({&all_[i], &all_[j]});
  }
  /// The fewest that are enough.
  void more_devices() {
    for (size_t i = 0; i < devices_.size() && !best_; ++i) look({&devices_[i]});
  }
  void options_on_more_devices() {
    for (size_t i = 0; i < devices_.size() && !best_; ++i)
      for (const Change& change : all_) look({&change, &devices_[i]});
  }

  void look(const std::vector<const Change*>& changes) {
    if (priced_ > kMostPriced) return;
    Asked changed = asked_;
    for (const Change* const change : changes)
      if (!change->apply(changed)) return;
    SearchResult found = search_beside_saves(changed.problem, changed.fixed, 1);
    priced_ += found.priced;
    if (found.plans.empty()) return;
    Plan& plan = found.plans.front();
    const double speed = plan.tokens_per_second(changed.problem);
    if (best_ && speed <= best_->plan.tokens_per_second(best_->problem)) return;
    std::string options;
    for (const Change* const change : changes) {
      const std::string words = change->words(changed.problem, plan.candidate);
      if (words.empty()) return;  // no option says that this choice is left out
      options += (options.empty() ? "" : " ") + words;
    }
    best_ = Remedy{changed.problem, plan, options, ""};
  }

  const Asked asked_;
  const Plan& base_;
  const std::vector<Change> all_ = changes(), devices_ = multiples_of_devices();
  std::optional<Remedy> best_;
  int64_t priced_ = 0;
};

/// What our trainer would name for this plan on this machine.
std::optional<Remedy> change_of_run(const PlanProblem& p, const Plan& base) {
  if (!p.trained_here) return std::nullopt;
  const std::optional<ChangedRun> run = least_change_of_run(p, base.candidate);
  if (!run) return std::nullopt;
  PlanProblem changed = p;
  changed.save_copy = run->save_copy;
  changed.needs_save_copy = p.needs_save_copy && run->save_copy == p.save_copy;
  Remedy remedy{changed, make_plan(changed, run->candidate), run->options, ""};
  remedy.words = words_of_remedy(p, base, remedy);
  return remedy;
}

/// Every choice of a plan. The number of data ranks follows from the others.
Fixed all_choices(const PlanProblem& p, const Candidate& c) {
  Fixed fixed{.tensor = c.tensor,
              .pipeline = c.pipeline,
              .context = c.context,
              .chunks = c.chunks,
              .micro_batch = c.micro_batch,
              .counts_embedding = c.counts_embedding,
              .counts_head = c.counts_head,
              .recompute_layers = recomputed_of_chunk(c),
              .sequence = c.sequence,
              .sharding = c.sharding,
              .recompute = c.recompute};
  if (c.first_layers > 0) fixed.first_layers = c.first_layers;
  if (c.last_layers > 0) fixed.last_layers = c.last_layers;
  if (p.model.has_experts()) {
    fixed.expert = c.expert;
    fixed.expert_tensor = c.expert_tensor;
  }
  return fixed;
}

}  // namespace

std::optional<Remedy> least_change_of_command(const PlanProblem& p, const Fixed& fixed, const Plan& closest) {
  if (auto remedy = change_of_run(p, closest)) return remedy;
  return Trial({p, fixed}, closest).found();
}

std::optional<Remedy> least_change_of_plan(const PlanProblem& p, const Plan& plan) {
  return least_change_of_command(p, all_choices(p, plan.candidate), plan);
}

}  // namespace megalith
