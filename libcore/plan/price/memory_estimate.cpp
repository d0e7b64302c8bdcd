#include "libcore/plan/price/memory_estimate.h"

#include <algorithm>
#include <cmath>

#include "libcore/base/text.h"

namespace megalith {
namespace {

// Bytes of a parameter's state in mixed precision: Megatron-LM's README, "Distributed Optimizer".
constexpr double kMaster = 4, kGradient = 4;               // bytes in fp32
constexpr double kSecondMoment = 4, kEightBitMoments = 2;  // in fp32; both of Adam's moments in 8 bits

/// V-half and V-min keep a half and a third of the chunks that 1F1B's first stage keeps, plus the one being
/// processed: Qi et al. 2024 (arXiv 2405.15362).
constexpr double kVHalfDivisor = 2, kVMinDivisor = 3;

/// Messages that a pipeline rank holds at one time: one incoming and one outgoing, in each direction.
constexpr double kMessages = 4;
/// Layers whose whole parameters FSDP holds at one time: the current one and the next, which is being
/// gathered.
constexpr double kLayersHeld = 2;
/// Bytes of our own backend's scratch memory on a processor. Belief (layer_price.cpp), only for closed forms:
/// the trainer's own count (trainer.h) decides what fits.
constexpr double kProcessorWorkspace = 16.0 * (1 << 20);
/// The share of the allocator's slack that remains with expandable segments. Belief.
constexpr double kExpandableSlack = 0.1;

/// The largest number of chunks of microbatches that stage `stage` holds at any time.
double chunks_in_flight(const PlanProblem& p, const Candidate& c, int stage) {
  const double later_stages = c.pipeline - stage - 1;
  const double total = static_cast<double>(c.microbatches) * c.chunks;
  switch (p.software.schedule) {
    case Schedule::kOneForwardOneBackward: {
      const double warmup = c.chunks == 1 ? later_stages : 2 * later_stages + (c.chunks - 1.0) * c.pipeline;
      return std::min(total, warmup + 1);
    }
    case Schedule::kZeroBubble:
    case Schedule::kZeroBubbleV:
      return std::min(total, c.chunks * static_cast<double>(c.pipeline));
    case Schedule::kVHalf:
      return std::min(total, c.chunks * (c.pipeline / kVHalfDivisor + 1));
    case Schedule::kVMin:
      return std::min(total, c.chunks * (c.pipeline / kVMinDivisor + 1));
    case Schedule::kDualPipe:
      return std::min(total, c.pipeline + 1.0);  // of both directions: arXiv 2412.19437, table 2
  }
  return total;
}

/// Bytes per parameter: the moments, and in 16-bit models also the fp32 master weights.
double optimizer_bytes(const PlanProblem& p) {
  const Software& s = p.software;
  return (p.half() ? kMaster : 0) + (s.adam_8bit ? kEightBitMoments : s.first_moment_bytes + kSecondMoment);
}

/// Bytes per parameter of a table that bitsandbytes' 8-bit Adam leaves out: a StableEmbedding keeps its
/// moments in 32 bits.
constexpr double kTableMoments = 2 * kSecondMoment - kEightBitMoments;

/// The parameters of word embeddings on a stage.
double table_parameters(const Candidate& c, const ParameterCount& count, const Layout::Kind& kind) {
  const bool copies = kind.stage == c.pipeline - 1 && c.pipeline > 1;
  return (kind.stage == 0 ? count.embedding : 0) + (copies ? count.head_copy : 0);
}

/// The weights, and the state of the parameters that are trained. `bytes`: those of the weights.
void add_state(const PlanProblem& p, const Candidate& c, const StageParameters& bytes,
               const StageParameters& trained, MemoryEstimate& estimate) {
  const double ranks = static_cast<double>(c.data) * c.context, copies = c.expert_data();
  // Bytes on a device of a state with `each` bytes per parameter that is sharded from ZeRO stage `from` on.
  const auto held = [&](const StageParameters& parameters, double each, Sharding from) {
    const bool cut = counted_sharding(p, c) >= from;
    return parameters.shared * each * (cut ? 1 / ranks : 1.0) +
           parameters.experts * each * (cut ? 1 / copies : 1.0);
  };
  // DualPipe's ranks hold two stages each. The two copies of a stage share a state that is sharded.
  const double stages = p.software.schedule == Schedule::kDualPipe && c.pipeline > 1 ? 2 : 1;
  estimate.parameters = stages * held(bytes, 1, Sharding::kParameters);
  estimate.gradients =
      stages * held(trained, p.half() ? p.software.gradient_bytes : kGradient, Sharding::kGradients);
  estimate.optimizer = held(trained, optimizer_bytes(p), Sharding::kOptimizer) *
                       (counted_sharding(p, c) >= Sharding::kOptimizer ? 1 : stages);
  // Only the ranks of the model's first replica save parameters; the estimate is for one of these.
  if (p.save_copy != SaveCopy::kNone) estimate.save_copy = estimate.parameters;
  if (p.save_copy == SaveCopy::kAll) estimate.save_copy += estimate.optimizer;
}

double layer_activations(const Candidate& c, const LayerCost& layer, int layers) {
  const int again = c.recompute == Recomputed::kFull ? recomputed_layers(c, layers) : layers;
  return again * layer.kept_of(c.recompute) + (layers - again) * layer.kept;
}

double stage_activations(const PlanProblem& p, const Candidate& c, const LayerPrice& price,
                         const Layout::Kind& kind) {
  const int stage = kind.stage;
  const double flight = chunks_in_flight(p, c, stage) / c.chunks;
  double kept = layer_activations(c, kind.layer(price), kind.layers) * flight;
  // During its backward pass, a recomputed layer holds everything again.
  if (c.recompute != Recomputed::kNone) kept += price.kept - price.kept_of(c.recompute);
  if (stage == 0) kept += flight * price.kept_embedding;
  if (stage == c.pipeline - 1) kept += price.kept_head;
  return kept;
}

double transient_bytes(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  const double messages = c.pipeline > 1 ? kMessages * price.message : 0;
  const double workspace =
      p.machine.device.multiprocessors > 0 ? p.coefficients->workspace_bytes : kProcessorWorkspace;
  // FSDP reduces the gradients of one layer at a time.
  const ParameterCount& bytes = price.weight_bytes;
  const double unit = counted_sharding(p, c) == Sharding::kParameters
                          ? kLayersHeld * (bytes.block + bytes.experts) +
                                (price.trained.block + price.trained.experts) * p.software.gradient_bytes +
                                bytes.embedding + bytes.head
                          : 0;
  return price.transient + messages + workspace + unit;
}

double context_bytes(const PlanProblem& p, const Candidate& c) {
  if (p.machine.device.multiprocessors == 0) return 0;  // a CPU has no driver context
  const int groups = (c.tensor > 1) + (c.pipeline > 1) + (c.data > 1) + (c.context > 1) + (c.expert > 1);
  return p.coefficients->context_bytes + p.coefficients->group_bytes * groups;
}

}  // namespace

std::vector<MemoryPart> memory_parts(const PlanProblem& p) {
  std::vector<MemoryPart> parts(std::begin(kMemoryParts), std::end(kMemoryParts));
  if (p.save_copy == SaveCopy::kNone)
    std::erase_if(parts, [](const MemoryPart& part) { return part.of_saves; });
  return parts;
}

double usable_memory(const PlanProblem& p) {
  const Accelerator& d = p.machine.device;
  return d.memory * (d.multiprocessors > 0 ? p.coefficients->usable_share : 1);
}

double fit_probability(const PlanProblem& p, double needed) {
  const double usable = usable_memory(p);
  if (p.trained_here || needed <= 0) return needed <= usable ? 1 : 0;
  const double deviations = std::log(usable / needed) / p.coefficients->memory_spread;
  return std::erfc(-deviations / std::sqrt(2.0)) / 2;
}

bool prediction_decides(const PlanProblem& p) {
  return p.trained_here || p.asked_probability <= 0.5;
}

double allowed_memory(const PlanProblem& p) {
  const double usable = usable_memory(p);
  if (prediction_decides(p)) return usable;
  constexpr int kHalvings = 60;  // to the last bit
  double none = 0, all = usable;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (none + all) / 2;
    (fit_probability(p, middle) >= p.asked_probability ? none : all) = middle;
  }
  return none;
}

std::string gigabytes(double bytes) {
  return format_fixed(bytes / 1e9, 2);
}

StageParameters stage_parameters(const Candidate& c, const ParameterCount& count, const Layout::Kind& kind) {
  const double with_experts = kind.layers - kind.plain;
  StageParameters out{count.block * with_experts + count.plain_block * kind.plain,
                      count.experts * with_experts};
  if (kind.stage == 0) out.shared += count.embedding;
  if (kind.stage == c.pipeline - 1) {
    out.shared += count.head + (c.pipeline > 1 ? count.head_copy : 0);
    out.experts += count.head_experts;
  }
  return out;
}

double block_activations(const PlanProblem& p, const Candidate& c) {
  return price_layer(p, shape_of(c)).kept_of(c.recompute);
}

MemoryEstimate memory_estimate(const PlanProblem& p, const Candidate& c, const LayerPrice& price,
                               const Layout::Kind& kind) {
  MemoryEstimate estimate;
  add_state(p, c, stage_parameters(c, price.weight_bytes, kind), stage_parameters(c, price.trained, kind),
            estimate);
  estimate.activations = stage_activations(p, c, price, kind);
  if (kind.stage == c.pipeline - 1) estimate.logits = price.logits;
  estimate.transient = transient_bytes(p, c, price);
  estimate.context = context_bytes(p, c);
  const double slack = p.machine.device.multiprocessors == 0 ? 0
                       : p.software.expandable_segments      ? kExpandableSlack * p.coefficients->slack
                                                             : p.coefficients->slack;
  const double working = estimate.activations + estimate.logits + estimate.transient;
  estimate.fragmentation = slack * working;
  // The buffers of the gradients' exchange and of the optimizer's step are allocated after the activations
  // are freed. The allocator keeps the memory of both, and returns unused memory only when no other is left.
  const double stepping =
      (c.data > 1 ? p.software.bucket_bytes : 0) +
      (p.half() ? estimate.optimizer / optimizer_bytes(p) * p.software.step_copy_bytes : 0);
  estimate.transient += std::max(0.0, stepping - working);
  if (p.software.adam_8bit) {
    const bool cut = counted_sharding(p, c) >= Sharding::kOptimizer;
    estimate.optimizer += kTableMoments * table_parameters(c, price.trained, kind) /
                          (cut ? static_cast<double>(c.data) * c.context : 1.0);
  }
  if (!p.software.expandable_segments)
    estimate.cached = p.coefficients->cached_share * std::min(stepping, working);
  return estimate;
}

MemoryEstimate memory_estimate(const PlanProblem& p, const Candidate& c, int stage) {
  const LayerPrice price = price_layer(p, shape_of(c));
  return memory_estimate(p, c, price, stage_kind(p, c, price, stage));
}

WorstStage worst_stage(const PlanProblem& p, const Candidate& c, const LayerPrice& price,
                       const Layout& layout) {
  WorstStage worst{-1, {}};
  for (const Layout::Kind& kind : layout.kinds) {
    const MemoryEstimate estimate = memory_estimate(p, c, price, kind);
    if (worst.stage < 0 || estimate.needed() > worst.estimate.needed()) worst = {kind.stage, estimate};
  }
  return worst;
}

WorstStage worst_stage(const PlanProblem& p, const Candidate& c) {
  const LayerPrice price = price_layer(p, shape_of(c));
  return worst_stage(p, c, price, layout_of(p, c, price));
}

}  // namespace megalith
