#include "libcore/plan/time_model.h"

#include <algorithm>
#include <cmath>

#include "libcore/plan/memory_bill.h"

namespace megalith {
namespace {

// Rates relative to the data sheet. Fitted by hand to published single-node runs; docs/planner.md gives the
// errors that remain.
constexpr double kClock = 0.80;         // sustained tensor-core rate of a large GEMM
constexpr double kFlashForward = 0.50;  // of peak, causal work only
constexpr double kFlashBackward = 0.42;
constexpr double kMemoryRate = 0.80;  // of HBM bandwidth
constexpr double kLinkRate = 0.77;    // of NVLink's one-direction bandwidth, in rings
constexpr double kNetworkRate = 0.85;
constexpr double kLaunch = 4e-6;  // seconds a kernel
constexpr double kLinkLatency = 8e-6, kNetworkLatency = 2e-5;
constexpr double kHalfDepth = 500;  // k at which a GEMM's inner loop reaches half its rate

struct Link {
  double bandwidth, latency;
};

struct Pricer {
  const PlanProblem& p;
  const Candidate& c;
  const ModelConfig& m = p.model;
  const Accelerator& d = p.machine.device;
  double element = p.half ? 2 : 4;
  double n = static_cast<double>(p.model.seq_length) * c.micro_batch / c.context;
  double share = c.sequence ? 1.0 / c.tensor : 1.0;

  double peak() const { return p.half ? d.half_flops : d.float_flops; }
  bool cpu() const { return d.multiprocessors == 0; }
  double launch() const { return cpu() ? 1e-6 : kLaunch; }

  double gemm(double rows, double columns, double depth) const {
    double rate = peak();
    if (!cpu()) {
      const double tiles = std::ceil(rows / 128) * std::ceil(columns / 256);
      const double waves = tiles / d.multiprocessors;
      rate *= kClock * depth / (depth + kHalfDepth) * std::min(1.0, waves / std::ceil(waves));
    }
    const double bytes = element * (rows * depth + depth * columns + rows * columns);
    return std::max(2 * rows * columns * depth / rate, bytes / (kMemoryRate * d.memory_bandwidth)) + launch();
  }
  double stream(double bytes) const { return bytes / (kMemoryRate * d.memory_bandwidth) + launch(); }

  double query_width() const { return static_cast<double>(m.heads) * m.kv_channels / c.tensor; }
  double qkv_width() const {
    return query_width() +
           2 * std::max<double>(static_cast<double>(m.kv_heads()) / c.tensor, 1) * m.kv_channels;
  }
  double gates() const { return m.swiglu ? 2 : 1; }
  double ffn() const { return static_cast<double>(m.ffn_hidden) / c.tensor; }

  double linears_forward() const {
    return gemm(n, qkv_width(), m.hidden) + gemm(n, m.hidden, query_width()) +
           gemm(n, gates() * ffn(), m.hidden) + gemm(n, m.hidden, ffn());
  }
  double linears_backward() const {
    const auto both = [&](double out, double in) { return gemm(n, in, out) + gemm(out, in, n); };
    return both(qkv_width(), m.hidden) + both(m.hidden, query_width()) + both(gates() * ffn(), m.hidden) +
           both(m.hidden, ffn());
  }
  double attention_flops() const {
    return 2 * n * m.seq_length * query_width();
  }  // two products, half of them masked
  double attention_forward() const {
    return attention_flops() / ((cpu() ? 0.25 : kFlashForward) * peak()) + launch();
  }
  double attention_backward() const {
    return 2.5 * attention_flops() / ((cpu() ? 0.2 : kFlashBackward) * peak()) + launch();
  }
  double elementwise_forward() const {
    const double rows = element * n * m.hidden * share;
    return stream(3 * rows) * 2 + stream(element * n * (gates() + 1) * ffn()) +
           (m.hidden_dropout > 0 ? 2 * stream(rows) : 0);
  }
  double block_forward() const { return linears_forward() + attention_forward() + elementwise_forward(); }
  double block_backward() const {
    return linears_backward() + attention_backward() + 2 * elementwise_forward();
  }
  double head() const {  // forward and both gradients, and the softmax over the logits
    const double vocab = static_cast<double>(m.padded_vocab(c.tensor)) / c.tensor;
    return gemm(n, vocab, m.hidden) + gemm(n, m.hidden, vocab) + gemm(vocab, m.hidden, n) +
           stream(n * vocab * 10);
  }

  Link tensor_link() const {
    if (c.tensor <= p.machine.local_world) return {kLinkRate * d.link_bandwidth, kLinkLatency};
    return {kNetworkRate * d.network_bandwidth, kNetworkLatency};
  }
  Link data_link() const {
    if (p.machine.world <= p.machine.local_world || c.tensor * c.context * c.data <= p.machine.local_world)
      return {kLinkRate * d.link_bandwidth, kLinkLatency};
    return {kNetworkRate * d.network_bandwidth, kNetworkLatency};
  }
  /// One direction of a ring: a gather or a scatter; an all-reduce is two.
  static double ring(double bytes, int ranks, Link link) {
    if (ranks == 1) return 0;
    return (ranks - 1.0) / ranks * bytes / link.bandwidth + (ranks - 1) * link.latency;
  }
  double block_tensor_comm(bool recomputed) const {
    const double one = ring(element * n * m.hidden, c.tensor, tensor_link());
    const double halves =
        8 + (recomputed ? 4 : 0) + (c.sequence ? 1 : 0);  // 2 all-reduces forward, 2 backward
    return halves * one;
  }
};

}  // namespace

StepTime step_time(const PlanProblem& p, const Candidate& c) {
  const Pricer price{p, c};
  const double layers = static_cast<double>(p.model.layers) / c.pipeline,
               nmb = static_cast<double>(c.microbatches);
  const bool full = c.recompute == Recompute::kFull;
  const double again = full                                   ? price.block_forward()
                       : c.recompute == Recompute::kSelective ? price.attention_forward()
                                                              : 0;
  const double middle = layers * (price.block_forward() + price.block_backward());
  const double last = middle + price.head();  // the stage with the LM head is the slowest of an even cut
  StepTime t;
  t.compute = nmb * last;
  t.recompute = nmb * layers * again;
  t.tensor_comm = nmb * layers * price.block_tensor_comm(full);
  const double per_microbatch = last + layers * (again + price.block_tensor_comm(full));
  t.bubble = (c.pipeline - 1.0) / c.chunks * per_microbatch;
  if (c.pipeline > 1) {
    const double message = price.element * price.n * p.model.hidden * price.share;
    const bool apart = p.machine.world > p.machine.local_world;
    const Link link = apart ? Link{kNetworkRate * p.machine.device.network_bandwidth, kNetworkLatency}
                            : Link{kLinkRate * p.machine.device.link_bandwidth, kLinkLatency};
    t.pipeline_comm = 2 * c.chunks * (nmb + c.pipeline - 1) * (message / link.bandwidth + link.latency);
  }
  const ParameterCount count = count_parameters(p.model, c.tensor);
  const double parameters = count.block * layers + count.embedding + count.head;
  const int replicas = c.data * c.context;
  t.data_comm =
      Pricer::ring(4 * parameters, replicas, price.data_link()) +
      Pricer::ring((c.distributed_optimizer ? price.element : 4) * parameters, replicas, price.data_link());
  t.optimizer = price.stream(parameters / (c.distributed_optimizer ? replicas : 1) * (p.half ? 30 : 28));
  t.fixed = price.cpu() ? 1e-3 : 0.01;
  return t;
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
  const double peak = p.half ? p.machine.device.half_flops : p.machine.device.float_flops;
  return model_flops(p, c.global_batch) / (seconds * peak * p.machine.world);
}

}  // namespace megalith
