#include "libcore/plan/time_model.h"

#include <algorithm>
#include <cmath>

#include "libcore/plan/memory_estimate.h"

namespace megalith {
namespace {

double recomputed(const Candidate& c, const LayerPrice& price, int layers) {
  const bool some = c.recompute == Recomputed::kFull && c.recompute_layers > 0;
  return (some ? std::min(c.recompute_layers, layers) : layers) * price.again(c.recompute);
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

  double comm() const { return price.forward_comm + price.backward_comm; }

  /// Seconds of one microbatch between two stages, both directions, that are not hidden.
  double messages() const {
    if (c.pipeline == 1) return 0;
    const double hidden = c.chunks > 1 && p.software.overlap_messages ? k.message_overlap : 0;
    const double stall = p.machine.device.multiprocessors == 0 ? 0 : k.message_stall;
    const double one = price.sent / layout.message.bandwidth + layout.message.latency + price.put_together;
    return 2.0 * c.chunks * (one + stall) * (1 - hidden);
  }
  double bubble_share() const {
    switch (p.software.schedule) {
      case Schedule::kOneForwardOneBackward:
        return 1.0 / c.chunks;
      case Schedule::kZeroBubble:
        return 1.0 / 3;
      case Schedule::kZeroBubbleV:
        return 0.1;
      case Schedule::kVHalf:
        return 0.5;
      case Schedule::kVMin:
        return 1;
    }
    return 1;
  }

  struct Slowest {
    const Layout::Kind* kind;
    double seconds, sum;  // of it, and of all stages
  };
  Slowest slowest() const {
    Slowest out{nullptr, 0, 0};
    for (const Layout::Kind& kind : layout.kinds) {
      const double one = stage_seconds(c, price, kind.stage, kind.layers);
      out.sum += one * kind.times;
      if (!out.kind || one > out.seconds) {
        out.seconds = one;
        out.kind = &kind;
      }
    }
    return out;
  }

  double gradient_bytes() const {
    if (!p.half()) return 4;
    return p.software.reduced_bytes > 0 ? p.software.reduced_bytes : p.software.gradient_bytes;
  }

  /// FSDP and ZeRO-2 exchange with every microbatch, layer by layer, beside the layers' work.
  double sharded_layers(double layers) const {
    const int ranks = c.data * c.context;
    const bool gathers = c.sharding == Sharding::kParameters;
    const double gather =
        gathers ? ring_seconds(p.element() * price.parameters.block, ranks, layout.data) : 0;
    const double reduce = ring_seconds(gradient_bytes() * price.parameters.block, ranks, layout.data);
    const auto beside = [&](double work, double exchange) {
      const double hidden = std::min(work, exchange);
      return exchange - hidden + k.shard_contention * hidden;
    };
    const double again = recomputed(c, price, 1);
    return layers * (beside(price.forward, gather) + beside(price.backward + again, gather + reduce));
  }

  double data_comm(double parameters, double last_backward, double first_forward) const {
    const int ranks = c.data * c.context;
    if (ranks == 1) return 0;
    const auto exposed = [&](bool overlapped, double exchange, double window) {
      return exchange - (overlapped ? k.data_overlap * std::min(exchange, window) : 0);
    };
    const double half = ring_seconds(gradient_bytes() * parameters, ranks, layout.data);
    if (c.sharding == Sharding::kNone) return exposed(p.software.overlap_gradients, 2 * half, last_backward);
    const double gather = ring_seconds(p.element() * parameters, ranks, layout.data);
    const double reduce = p.software.reduces_whole ? 2 * half : half;
    return exposed(p.software.overlap_gradients, reduce, last_backward) +
           exposed(p.software.overlap_parameters, gather, first_forward);
  }

  double most_parameters() const {
    const Layout::Kind &first = layout.kinds.front(), &last = layout.kinds.back();
    return std::max(stage_parameters(c, price.parameters, first.stage, first.layers),
                    stage_parameters(c, price.parameters, last.stage, last.layers));
  }
  double optimizer(double parameters) const {
    const double bytes = p.half() ? 30 + p.software.gradient_bytes * 2 : 36;
    return k.optimizer_traffic * parameters * bytes / (k.memory_rate * p.machine.device.memory_bandwidth);
  }

  /// The step without what depends on the sharding.
  StepTime pipeline(const Slowest& slow) const {
    const double nmb = static_cast<double>(c.microbatches);
    const int layers = slow.kind->layers;
    StepTime t;
    t.bottleneck = slow.kind->stage;
    t.compute = nmb * (layers * (price.forward + price.backward) + extra(c, price, slow.kind->stage));
    t.recompute = nmb * recomputed(c, price, layers);
    t.tensor_comm = nmb * layers * comm();
    t.bubble = std::max(0.0, slow.sum - slow.seconds) * bubble_share();
    t.pipeline_comm = messages() * (nmb + (c.pipeline - 1.0) / c.chunks);
    t.fixed = p.machine.device.multiprocessors == 0 ? 1e-3 : k.step_overhead;
    return t;
  }
  void wait_for_the_slowest(StepTime& t) const {
    t.straggler = t.total() * (k.straggler * layout.machine_doublings);
  }

  StepTime time() const {
    const Slowest slow = slowest();
    StepTime t = pipeline(slow);
    const int ranks = c.data * c.context, layers = slow.kind->layers;
    const double parameters = most_parameters();
    t.data_comm = layout.tied;
    if (c.sharding < Sharding::kParameters)
      t.data_comm += data_comm(parameters, layers * price.backward, layers * price.forward);
    if (c.sharding >= Sharding::kGradients && ranks > 1) {
      // ZeRO-2 also reduces after each microbatch but the last, FSDP exchanges with all.
      const double times = static_cast<double>(c.microbatches) - (c.sharding == Sharding::kGradients ? 1 : 0);
      t.data_comm += times * sharded_layers(layers);
    }
    t.optimizer = optimizer(parameters / (c.sharding == Sharding::kNone ? 1 : ranks));
    wait_for_the_slowest(t);
    return t;
  }
  double least() const {
    StepTime t = pipeline(slowest());
    t.optimizer = optimizer(most_parameters() / (c.data * c.context));
    wait_for_the_slowest(t);
    return t.total();
  }
};

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
  return Assembly{p, bare, price, layout}.least();
}

double stage_seconds(const Candidate& c, const LayerPrice& price, int stage, int layers) {
  return layers * (price.forward + price.backward + price.forward_comm + price.backward_comm) +
         recomputed(c, price, layers) + extra(c, price, stage);
}

double model_flops(const PlanProblem& p, int64_t global_batch) {
  const ModelConfig& m = p.model;
  const double query = static_cast<double>(m.heads) * m.kv_channels,
               key = static_cast<double>(m.kv_heads()) * m.kv_channels;
  const double block =
      static_cast<double>(m.hidden) * (2 * query + 2 * key + (m.swiglu ? 3.0 : 2.0) * m.ffn_hidden);
  const double head = static_cast<double>(m.hidden) * static_cast<double>(m.vocab_size);
  const double tokens = static_cast<double>(global_batch) * m.seq_length;
  return 6 * tokens * (block * m.layers + head) + 6 * tokens * m.seq_length * query * m.layers;
}

double model_flops_utilisation(const PlanProblem& p, const Candidate& c, double seconds) {
  const double peak = p.half() ? p.machine.device.half_flops : p.machine.device.float_flops;
  return model_flops(p, c.global_batch) / (seconds * peak * p.machine.world);
}

}  // namespace megalith
