#include "libcore/plan/search/remedy.h"

#include <cmath>
#include <functional>
#include <set>
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

/// A change of one option. apply() returns false if the command already has the option. `chosen`: the options
/// of a plan that the change leaves to the search, which are then named with their new values.
struct Change {
  std::function<bool(Asked&)> apply;
  std::string option = {};
  std::set<std::string> chosen = {};
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
  asked.problem.save_copy = RunShape::SaveCopy::kNone;
  return needed;
}

std::vector<Change> changes() {
  std::vector<Change> out = {
      {save_without_copy, "--no-async-save"},
      {halve_gradients, "--grad-reduce-in-bf16"},
      {expand_segments, "--expandable-segments"},
      {keep_no_scores, "--attention-kernel flash2"},
      {[](Asked& a) { return opened(a.fixed.micro_batch); }, "", {"micro-batch-size"}},
      {[](Asked& a) { return opened(a.fixed.sequence); }, "", {"sequence-parallel"}},
      {open_recomputation,
       "",
       {"recompute-granularity", "recompute-method", "recompute-num-layers", "recompute-modules"}},
      {[](Asked& a) { return opened(a.fixed.sharding); },
       "",
       {"use-distributed-optimizer", "sharding", "use-megatron-fsdp", "data-parallel-sharding-strategy"}},
      {[](Asked& a) { return opened(a.fixed.tensor); }, "", {"tensor-model-parallel-size"}},
      {[](Asked& a) { return opened(a.fixed.context); }, "", {"context-parallel-size"}},
      {open_pipeline,
       "",
       {"pipeline-model-parallel-size", "num-layers-per-virtual-pipeline-stage", "pipeline-layers",
        "decoder-first-pipeline-num-layers", "decoder-last-pipeline-num-layers",
        "account-for-embedding-in-pipeline-split", "account-for-loss-in-pipeline-split",
        "pipeline-model-parallel-layout"}},
      {[](Asked& a) { return opened(a.fixed.data); }, "", {"data-parallel-size"}},
      {[](Asked& a) { return opened(a.fixed.expert); }, "", {"expert-model-parallel-size"}},
      {[](Asked& a) { return opened(a.fixed.expert_tensor); }, "", {"expert-tensor-parallel-size"}}};
  return out;
}

std::vector<Change> multiples_of_devices() {
  std::vector<Change> out;
  for (const int times : {2, 4, 8, 16})
    out.push_back({[times](Asked& a) { return multiply_devices(a, times); }, "--world-size"});
  return out;
}

/// The options of a plan that a change chose, with their values; those of the attention kernel and so on are
/// the change's own.
std::string words_of(const Change& change, const PlanProblem& p, const Candidate& c) {
  if (change.option == "--world-size") return concat("--world-size ", p.machine.world);
  if (change.chosen.contains("data-parallel-size")) return concat("--data-parallel-size ", c.data);
  std::string out = change.option;
  for (const LaunchOption& option : cut_options(p, c, p.trained_here))
    if (change.chosen.contains(option.name))
      out += concat(out.empty() ? "--" : " --", option.name, option.value.empty() ? "" : " ", option.value);
  return out;
}

std::string gigabytes(double bytes) {
  return format_fixed(bytes / 1e9, 2) + " GB";
}

/// What a remedy does to the plan that did not fit.
std::string words_of_remedy(const PlanProblem& p, const Plan& base, const Remedy& remedy) {
  const double freed = base.memory.estimate.needed() - remedy.plan.memory.estimate.needed();
  const double time = base.tokens_per_second(p) / remedy.plan.tokens_per_second(remedy.problem) - 1;
  return concat(remedy.options, ": frees ", gigabytes(freed), ", ", time < 0 ? "saves " : "costs ",
                format_fixed(100 * std::abs(time), 1), " % of time");
}

/// Tries changes of one command and keeps the one with the fastest plan.
class Trial {
 public:
  Trial(Asked asked, const Plan& base) : asked_(std::move(asked)), base_(base) {}

  std::optional<Remedy> found() {
    for (const auto& tried :
         {&Trial::single_options, &Trial::more_devices, &Trial::pairs, &Trial::options_on_more_devices})
      if (!best_) (this->*tried)();
    if (best_) best_->words = words_of_remedy(asked_.problem, base_, *best_);
    return std::move(best_);
  }

 private:
  /// Candidates after which no more changes are tried, so that an answer takes seconds at most.
  static constexpr int64_t kMostPriced = 4'000'000;

  void single_options() {
    for (const Change& change : all_) look({&change});
  }
  /// The fewest that are enough.
  void more_devices() {
    for (size_t i = 0; i < devices_.size() && !best_; ++i) look({&devices_[i]});
  }
  void pairs() {
    for (size_t i = 0; i < all_.size(); ++i)
      for (size_t j = i + 1; j < all_.size(); ++j) look({&all_[i], &all_[j]});
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
      const std::string words = words_of(*change, changed.problem, plan.candidate);
      if (words.empty()) return;  // the choice is left out, which another change names
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

/// Every choice of a plan, of which the number of data ranks follows.
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
