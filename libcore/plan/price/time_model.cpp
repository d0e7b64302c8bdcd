#include "libcore/plan/price/time_model.h"

#include <algorithm>
#include <cmath>

#include "libcore/plan/price/code_base.h"
#include "libcore/plan/price/memory_estimate.h"

namespace megalith {
namespace {

// "Belief": as in layer_price.cpp.

/// The share of 1F1B's bubble that remains with other schedules. They split the backward pass in two: ZB-H1
/// leaves a third (Qi et al. 2023, arXiv 2401.10241). The V schedules also have two chunks per stage, in a V
/// (Qi et al. 2024, arXiv 2405.15362); their shares are beliefs, and V-min is assumed to leave the whole
/// bubble.
constexpr double kZeroBubbleShare = 1.0 / 3, kZeroBubbleVShare = 0.1, kVHalfShare = 0.5, kVMinShare = 1;
/// DualPipe's bubble is (p / 2 - 1) (F&B + B - 3 W) for p stages, that of 1F1B (p - 1) (F + B): DeepSeek-V3
/// (arXiv 2412.19437), table 2. In products B = 2 F, W = F and F&B = 3 F, so that the second factors are 2 F
/// and 3 F.
constexpr double kDualPipeForwards = 2, kPlainForwards = 3;

constexpr double kFp32 = 4;  // bytes
/// Bytes that a step of the optimizer moves per parameter: masters and moments read and written (24), the
/// weight written, gradients scaled. The gradients of a 16-bit model come on top, with kGradientPasses passes
/// over memory. Belief: the coefficient optimizer_traffic was fitted with this value in place.
constexpr double kMixedStep = 30, kGradientPasses = 2, kFp32Step = 36;
constexpr double kMomentPasses = 2;  // a moment is read and written
/// Seconds per step that loading data and logging take on a CPU. Belief.
constexpr double kProcessorOverhead = 1e-3;
/// Directions of a pipeline's messages: activations, and their gradients.
constexpr double kDirections = 2;
/// Operations per matrix parameter and token: a multiplication and an addition in each of three products, the
/// forward one and those of both gradients. A frozen matrix has no gradient.
constexpr double kOperations = 6, kFrozenOperations = 4;
/// The part of the scores that a causal mask leaves.
constexpr double kCausalHalf = 0.5;
/// Inputs of the matrix that a layer of further predictions begins with: the previous hidden state and an
/// embedding.
constexpr double kJoinedInputs = 2;

/// The number of a stage's `layers` layers in which something is recomputed.
int layers_again(const Candidate& c, int layers) {
  return c.recompute == Recomputed::kFull ? recomputed_layers(c, layers) : layers;
}
double recomputed(const Candidate& c, const LayerCost& layer, int layers) {
  return layers_again(c, layers) * layer.again(c.recompute);
}
double extra(const Candidate& c, const LayerPrice& price, int stage) {
  return (stage == 0 ? price.embedding : 0) + (stage == c.pipeline - 1 ? price.head : 0);
}

struct Assembly {
  const PlanProblem& p;
  const Candidate& c;
  const LayerPrice& price;
  const Layout& layout;
  const Coefficients& k = *p.coefficients;
  const Sharding sharding = counted_sharding(p, c);

  /// Exposed seconds of one microbatch's messages between two stages, in both directions.
  double messages() const {
    if (c.pipeline == 1) return 0;
    const double hidden = c.chunks > 1 && p.software.overlap_messages ? k.message_overlap : 0;
    const double stall = p.machine.device.multiprocessors == 0 ? 0 : k.message_stall;
    const double one = price.sent / layout.message.bandwidth + layout.message.latency + price.put_together;
    return kDirections * c.chunks * (one + stall) * (1 - hidden);
  }
  double bubble_share() const {
    switch (p.software.schedule) {
      case Schedule::kOneForwardOneBackward:
        return 1.0 / c.chunks;
      case Schedule::kZeroBubble:
        return kZeroBubbleShare;
      case Schedule::kZeroBubbleV:
        return kZeroBubbleVShare;
      case Schedule::kVHalf:
        return kVHalfShare;
      case Schedule::kVMin:
        return kVMinShare;
      case Schedule::kDualPipe:
        return kDualPipeForwards * std::max(0.0, c.pipeline / 2.0 - 1) /
               (kPlainForwards * std::max(1.0, c.pipeline - 1.0));
    }
    return 1;
  }

  struct Stages {
    double sum = 0;  // seconds of one microbatch through all stages in sequence
    const Layout::Kind* slowest = nullptr;
  };
  Stages all_stages() const {
    Stages out;
    double most = 0;
    for (const Layout::Kind& kind : layout.kinds) {
      const double one = stage_seconds(c, price, kind);
      out.sum += one * kind.times;
      if (!out.slowest || one > most) out.slowest = &kind;
      most = std::max(most, one);
    }
    return out;
  }

  double gradient_bytes() const {
    if (!p.half()) return kFp32;
    return p.software.reduced_bytes > 0 ? p.software.reduced_bytes : p.software.gradient_bytes;
  }

  /// A gather or a scatter over the ranks that have the same parameters.
  double spread(const StageParameters& parameters, double bytes) const {
    return ring_seconds(bytes * parameters.shared, c.data * c.context, layout.data) +
           ring_seconds(bytes * parameters.experts, c.expert_data(), layout.expert_data);
  }
  /// What the sum of their gradients takes longer in rank order.
  double ordered(const StageParameters& parameters) const {
    return ordered_sum_seconds(p, gradient_bytes() * parameters.shared, c.data * c.context) +
           ordered_sum_seconds(p, gradient_bytes() * parameters.experts, c.expert_data());
  }
  /// A scatter of the sums of their gradients.
  double reduced(const StageParameters& parameters) const {
    return spread(parameters, gradient_bytes()) + ordered(parameters);
  }

  /// Exposed seconds per microbatch with FSDP or ZeRO-2, which exchange layer by layer during the layers'
  /// work.
  double sharded_layers(const Layout::Kind& kind) const {
    const LayerCost& layer = kind.layer(price);
    const double with_experts = static_cast<double>(kind.layers - kind.plain) / kind.layers;
    const auto of_layer = [&](const ParameterCount& count) {
      return StageParameters{with_experts * count.block + (1 - with_experts) * count.plain_block,
                             with_experts * count.experts};
    };
    const double gather = sharding == Sharding::kParameters ? spread(of_layer(price.weight_bytes), 1) : 0;
    const double reduce = reduced(of_layer(price.trained));
    const auto beside = [&](double work, double exchange) {
      const double hidden = std::min(work, exchange);
      return exchange - hidden + k.shard_contention * hidden;
    };
    const int again = layers_again(c, kind.layers);
    const double backward = layer.backward_seconds();
    return kind.layers * beside(layer.forward_seconds(), gather) +
           again * beside(backward + layer.again(c.recompute), gather + reduce) +
           (kind.layers - again) * beside(backward, gather + reduce);
  }

  /// The gradients outside a stage's layers that ZeRO-2 reduces after each microbatch: all but those of a
  /// tied table. Those of the head travel while the layers work, those of the embedding after all work.
  double sharded_ends(const Layout::Kind& kind) const {
    const ParameterCount& count = price.trained;
    double exposed = 0;
    if (kind.stage == 0) exposed += reduced({count.embedding - count.head_copy, 0});
    if (kind.stage == c.pipeline - 1)
      exposed += k.shard_contention * reduced({count.head, count.head_experts});
    return exposed;
  }

  double data_comm(const StageParameters& parameters, double last_backward, double first_forward) const {
    if (holders(p, c) == 1) return 0;
    const auto exposed = [&](bool overlapped, double exchange, double window) {
      return exchange - (overlapped ? k.data_overlap * std::min(exchange, window) : 0);
    };
    const double half = spread(parameters, gradient_bytes()), whole = kHalvesOfAllReduce * half;
    if (sharding == Sharding::kNone)
      return exposed(p.software.overlap_gradients, whole + ordered(parameters), last_backward);
    const double gather = spread(parameters, p.element());
    const double reduce = (p.software.reduces_whole ? whole : half) + ordered(parameters);
    return exposed(p.software.overlap_gradients, reduce, last_backward) +
           exposed(p.software.overlap_parameters, gather, first_forward);
  }

  /// The trained parameters of the stage that has the most.
  StageParameters most_parameters() const {
    const StageParameters first = stage_parameters(c, price.trained, layout.kinds.front()),
                          last = stage_parameters(c, price.trained, layout.kinds.back());
    return last.sum() > first.sum() ? last : first;
  }
  /// Seconds of the optimizer's step. `cut`: its state is sharded over the ranks that have the same
  /// parameters.
  double optimizer(const StageParameters& parameters, bool cut) const {
    const double narrow = kMomentPasses * (kFp32 - p.software.first_moment_bytes);
    const double bytes =
        (p.half() ? kMixedStep + p.software.gradient_bytes * kGradientPasses : kFp32Step) - narrow;
    const double held = cut ? parameters.shared / (c.data * c.context) + parameters.experts / c.expert_data()
                            : parameters.sum();
    return k.optimizer_traffic * held * bytes / (k.memory_rate * p.machine.device.memory_bandwidth);
  }

  /// The parts of a step that do not depend on the sharding, for the case that the slowest stages are of this
  /// kind.
  StepTime pipeline(const Layout::Kind& kind, const Stages& all) const {
    const double nmb = static_cast<double>(c.microbatches);
    const int layers = kind.layers;
    const LayerCost& layer = kind.layer(price);
    StepTime t;
    t.bottleneck = all.slowest->stage;
    t.compute = nmb * (layers * (layer.forward + layer.backward) + extra(c, price, kind.stage));
    t.recompute = nmb * recomputed(c, layer, layers);
    t.tensor_comm = nmb * layers * (layer.forward_comm + layer.backward_comm);
    t.expert_comm = nmb * layers * (layer.forward_exchange + layer.backward_exchange);
    t.bubble = std::max(0.0, all.sum - stage_seconds(c, price, kind)) * bubble_share();
    t.pipeline_comm = messages() * (nmb + (c.pipeline - 1.0) / c.chunks);
    t.fixed = p.machine.device.multiprocessors == 0 ? kProcessorOverhead : k.step_overhead;
    return t;
  }
  void wait_for_the_slowest(StepTime& t) const {
    t.straggler = t.total() * (k.straggler * layout.machine_doublings);
  }

  StepTime held_up_by(const Layout::Kind& kind, const Stages& all) const {
    StepTime t = pipeline(kind, all);
    const int layers = kind.layers;
    const LayerCost& layer = kind.layer(price);
    const StageParameters parameters = most_parameters();
    t.data_comm = layout.tied;
    if (sharding < Sharding::kParameters)
      t.data_comm += data_comm(parameters, layers * layer.backward_seconds() + recomputed(c, layer, layers),
                               layers * layer.forward_seconds());
    if (sharding >= Sharding::kGradients && holders(p, c) > 1) {
      // ZeRO-2 also reduces after each microbatch except the last; FSDP exchanges in every microbatch.
      const bool again = sharding == Sharding::kGradients;
      const double times = static_cast<double>(c.microbatches) - (again ? 1 : 0);
      t.data_comm += times * (sharded_layers(kind) + (again ? sharded_ends(kind) : 0));
    }
    t.optimizer = optimizer(parameters, sharding != Sharding::kNone);
    wait_for_the_slowest(t);
    return t;
  }
  /// Computes the step with each kind of stage as the bottleneck and returns the longest one. Kinds hide
  /// different amounts of the exchange, so the result would otherwise jump where a faster device makes
  /// another kind the slowest.
  StepTime time() const {
    const Stages all = all_stages();
    StepTime longest = held_up_by(*all.slowest, all);
    for (const Layout::Kind& kind : layout.kinds) {
      // A kind equal to the slowest is already counted.
      if (kind.layers == all.slowest->layers && kind.plain == all.slowest->plain) continue;
      if (const StepTime t = held_up_by(kind, all); t.total() > longest.total()) longest = t;
    }
    return longest;
  }
  double minimum() const {
    const Stages all = all_stages();
    StepTime t = pipeline(*all.slowest, all);
    t.optimizer = optimizer(most_parameters(), true);
    wait_for_the_slowest(t);
    return t.total();
  }
};

/// Whether runs of this kind, or a measurement of the machine, support the prediction. None of them has
/// adapters.
bool is_known(const PlanProblem& p) {
  if (p.tuning.adapts()) return false;
  if (p.measured || p.trained_here) return true;
  return code_base(p.software.code_base).has_fitted_runs && has_fitted_runs(p.machine.device.name);
}

}  // namespace

StepTime step_time(const PlanProblem& p, const Candidate& c, const LayerPrice& price, const Layout& layout) {
  return Assembly{p, c, price, layout}.time();
}

StepTime step_time(const PlanProblem& p, const Candidate& c) {
  const LayerPrice price = price_layer(p, shape_of(c));
  return step_time(p, c, price, layout_of(p, c, price));
}

double least_seconds(const PlanProblem& p, const Candidate& c, const LayerPrice& price,
                     const Layout& layout) {
  Candidate bare = c;
  bare.recompute = Recomputed::kNone;
  return Assembly{p, bare, price, layout}.minimum();
}

double stage_seconds(const Candidate& c, const LayerPrice& price, const Layout::Kind& kind) {
  const LayerCost& layer = kind.layer(price);
  return kind.layers * layer.seconds() + recomputed(c, layer, kind.layers) + extra(c, price, kind.stage);
}

Interval unseen_interval(const PlanProblem& p, double seconds) {
  const Coefficients& k = *p.coefficients;
  const double experts = p.model.has_experts() ? k.expert_spread : 0;
  return {seconds / (1 + std::max(k.faster_spread, experts)),
          seconds * (1 + std::max(k.slower_spread, experts))};
}

Interval interval(const PlanProblem& p, double seconds) {
  if (!is_known(p)) return unseen_interval(p, seconds);
  const Coefficients& k = *p.coefficients;
  const double spread = p.model.has_experts() ? std::max(k.spread, k.expert_spread) : k.spread;
  return {seconds / (1 + spread), seconds * (1 + spread)};
}

Interval imbalance_interval(const PlanProblem& p, const Candidate& c) {
  const auto seconds = [&](double point) {
    PlanProblem at = p;
    at.imbalance_point = point;
    return step_time(at, c).total();
  };
  return {seconds(0), seconds(1)};
}

Interval step_interval(const PlanProblem& p, const Candidate& c, double seconds) {
  if (!p.model.has_experts()) return interval(p, seconds);
  const Interval ends = imbalance_interval(p, c);
  return {interval(p, ends.low).low, interval(p, ends.high).high};
}

double model_flops(const PlanProblem& p, int64_t global_batch) {
  const ModelShape& m = p.model;
  const double head = static_cast<double>(m.hidden) * static_cast<double>(m.vocab_size);
  const double tokens = static_cast<double>(global_batch) * m.seq_length;
  const double layers = m.layers + m.predicted, plain = m.plain_layers(m.layers);
  // A causal mask leaves half of both products of attention.
  const double width = kCausalHalf * (m.query_width() + m.output_width());
  const bool experts = m.has_experts();
  const double matrices = matrix_parameters(m, experts) * (layers - plain) +
                          matrix_parameters(m, false) * plain +
                          kJoinedInputs * m.predicted * m.hidden * m.hidden + head * (1 + m.predicted);
  const double scores = kOperations * tokens * m.seq_length * width * layers;
  if (!p.tuning.adapts()) return kOperations * tokens * matrices + scores;
  const double adapters = adapter_parameters(m, 1, p.tuning.lora_rank) * m.layers;
  return tokens * (kFrozenOperations * matrices + kOperations * adapters) + scores;
}

double model_flops_utilisation(const PlanProblem& p, const Candidate& c, double seconds) {
  const double peak = p.half() ? p.machine.device.half_flops : p.machine.device.float_flops;
  return model_flops(p, c.global_batch) / (seconds * peak * p.machine.world);
}

}  // namespace megalith
