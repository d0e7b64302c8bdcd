#include "libcore/plan/layer_price.h"

#include <algorithm>
#include <cmath>

#include "libcore/ops/attention.h"
#include "libcore/ops/linear.h"

namespace megalith {
namespace {

double query_width(const ModelConfig& m) {
  return static_cast<double>(m.heads) * m.kv_channels;
}
double key_width(const ModelConfig& m) {
  return static_cast<double>(m.kv_heads()) * m.kv_channels;
}
double gates(const ModelConfig& m) {
  return m.swiglu ? 2 : 1;
}
double norm_width(const ModelConfig& m) {
  return (m.norm == Normalization::kLayerNorm ? 2.0 : 1.0) * m.hidden;
}
bool has_dropout(const ModelConfig& m) {
  return m.hidden_dropout > 0;
}
bool eight_bits_or_less(Precision p) {
  return p == Precision::kFp8 || p == Precision::kMxfp8 || p == Precision::kNvfp4;
}

/// Key and value widths on one rank: with fewer groups than ranks a group's projections are repeated.
double local_key_width(const ModelConfig& m, int tensor) {
  return std::max(key_width(m) / tensor, static_cast<double>(m.kv_channels));
}

/// sqrt(sqrt(a^4 + b^4)): the greater of two times that overlap almost wholly.
double smooth_max(double a, double b) {
  return std::sqrt(std::sqrt(a * a * a * a + b * b * b * b));
}

/// Host and device wait for each other where they take as long: then the longer of both is exceeded by so
/// much.
constexpr double kTogether = 0.06;

/// Prices one LayerShape. n: tokens of a microbatch on a device before any cut along the sequence by the
/// tensor ranks.
struct Pricer {
  const PlanProblem& p;
  const LayerShape& s;
  const ModelConfig& m = p.model;
  const Software& w = p.software;
  const Coefficients& k = *p.coefficients;
  const Accelerator& d = p.machine.device;
  double e = p.element();
  double n = static_cast<double>(m.seq_length) * s.micro_batch / s.context;
  double share = s.sequence ? 1.0 / s.tensor : 1.0;
  double peak = sustained_flops(p);
  double bandwidth = k.memory_rate * d.memory_bandwidth;

  bool cpu() const { return d.multiprocessors == 0; }
  double gap() const { return cpu() ? 1e-6 : k.kernel_gap; }
  double q() const { return query_width(m) / s.tensor; }
  double kv() const { return local_key_width(m, s.tensor); }
  double qkv() const { return q() + 2 * kv(); }
  double ffn() const { return static_cast<double>(m.ffn_hidden) / s.tensor; }
  double scores() const { return n * m.seq_length * m.heads / s.tensor; }  // elements of the [s, s] matrices
  bool keeps_scores() const {
    return w.attention == AttentionKernel::kTorch || w.attention == AttentionKernel::kFusedSoftmax;
  }
  double stream(double bytes) const { return bytes / bandwidth + gap(); }

  /// The faster of 16 bits and what the precision allows, of which only a part is reached.
  double product_flops() const {
    const double narrow = p.precision == Precision::kNvfp4 && d.fp4_flops > 0 ? d.fp4_flops : d.fp8_flops;
    if (!eight_bits_or_less(p.precision) || narrow <= 0) return peak;
    return peak * (1 + k.narrow_rate * (narrow / d.half_flops - 1));
  }

  /// Share of the devices' multiprocessors that work when the output is cut into tiles of 128 x 256 or 128 x
  /// 128.
  double wave_share(double rows, double columns) const {
    if (cpu()) return 1;
    const auto share_of = [&](double tile_rows, double tile_columns) {
      const double tiles = std::ceil(rows / tile_rows) * std::ceil(columns / tile_columns);
      const double ideal = rows * columns / (tile_rows * tile_columns) / d.multiprocessors;
      return ideal / std::ceil(tiles / d.multiprocessors);
    };
    constexpr double kSmallTile = 0.9;  // of the rate of the large one: less reuse
    const double best = std::max(share_of(128, 256), kSmallTile * share_of(128, 128));
    return 1 / (1 - k.wave_weight + k.wave_weight / std::min(best, 1.0));
  }

  double product(double rows, double columns, double depth, double flops) const {
    double rate = flops * wave_share(rows, columns) * (cpu() ? 1 : depth / (depth + k.gemm_half_depth));
    const auto aligned = [](double size) { return std::fmod(size, 64) == 0; };
    if (!cpu() && !(aligned(rows) && aligned(columns) && aligned(depth))) rate *= k.misaligned_rate;
    const double bytes = e * (rows * depth + depth * columns + rows * columns);
    return smooth_max(2 * rows * columns * depth / rate, bytes / bandwidth) + gap();
  }
  double layer_product(double out, double in) const { return product(n, out, in, product_flops()); }

  double linears_forward() const {
    return layer_product(qkv(), m.hidden) + layer_product(m.hidden, q()) +
           layer_product(gates() * ffn(), m.hidden) + layer_product(m.hidden, ffn()) + narrowing(1);
  }
  double linears_backward() const {
    const auto both = [&](double out, double in) {
      return layer_product(in, out) + product(out, in, n, product_flops());
    };
    return both(qkv(), m.hidden) + both(m.hidden, q()) + both(gates() * ffn(), m.hidden) +
           both(m.hidden, ffn()) + narrowing(2);
  }
  double gates() const { return megalith::gates(m); }
  /// Casts of the products' inputs to 8 bits and less: read, and written in both orders.
  double narrowing(double times) const {
    if (!eight_bits_or_less(p.precision)) return 0;
    return times * stream(n * (2 * m.hidden + q() + ffn()) * (e + 2));
  }

  double attention_flops() const { return 2 * n * m.seq_length * q(); }  // two products, half of them masked
  double flash_rate() const {
    if (cpu()) return 0.25;
    double rate = w.attention == AttentionKernel::kFlash1   ? k.flash1_rate
                  : w.attention == AttentionKernel::kFlash2 ? k.flash2_rate
                                                            : k.fused_rate;
    // The public flash kernels use the previous generation's matrix instructions on devices that have 8-bit
    // ones.
    if (w.attention != AttentionKernel::kFused && d.fp8_flops > 0) rate *= k.old_mma_rate;
    return rate * m.kv_channels / (m.kv_channels + k.head_half_depth);
  }
  /// Passes over the scores in memory; the first number is for a kernel that scales, masks and normalises at
  /// once.
  double score_passes(bool forward) const {
    const double drop = m.attention_dropout > 0 ? 1 : 0;
    const double fused = forward ? 4 + 2.5 * drop : 7 + 2.5 * drop;
    return fused + (joined_softmax() ? 0 : k.torch_passes);
  }
  /// F1: whether one kernel scales, masks and normalises the scores.
  bool joined_softmax() const {
    return w.attention == AttentionKernel::kFusedSoftmax && m.seq_length <= 16384 &&
           m.heads / s.tensor * s.micro_batch % 4 == 0;
  }
  /// The matrix units take rows of whole 16-byte words: a head of 108 or 150 channels of 16 bits starts
  /// between two, and its products run on the vector units, at the data sheet's fp32 rate.
  double score_flops() const {
    return cpu() || !p.half() || m.kv_channels % 8 == 0 ? peak : k.vector_rate * d.float_flops;
  }
  double attention(bool forward) const {
    if (!keeps_scores()) {
      const double rate = peak * flash_rate() * (forward ? 1 : k.flash_backward);
      return (forward ? 1 : 2.5) * attention_flops() / rate + gap();
    }
    const double depth = m.kv_channels / (m.kv_channels + k.head_half_depth);
    const double products = (forward ? 2 : 4) * attention_flops() / (score_flops() * depth);
    return products + score_passes(forward) * scores() * e / bandwidth + (forward ? 4 : 8) * gap();
  }

  double norm_bytes(bool forward) const {  // two norms, of an element of the hidden size
    const double fused = forward ? 2 * e : 4 * e;
    return 2 * ((w.fused_norm && !w.cast_norm) || w.compiled ? fused : forward ? 2 * e + 32 : 4 * e + 76);
  }
  double residual_bytes(bool forward) const {
    return forward ? 2 * (3 * e + has_dropout(m)) : 2 * (2 * e + has_dropout(m));
  }
  double rotary_bytes(bool forward) const {
    if (m.position != PositionEmbedding::kRope) return 0;
    return (forward ? 1.0 : 1.2) * (w.fused_rope || w.compiled ? 2 * e : 10 * e);
  }
  double activation_bytes(bool forward) const {  // of an element of the feed-forward size
    const double fused = forward ? gates() + 1 : 2 * gates() + 1;
    return e * (fused + (w.fused_activation || w.compiled ? 0 : forward ? 2 : 4));
  }
  /// The projection is taken apart, and its gradient put together, in memory, but for kernels that read it
  /// whole.
  double copy_bytes() const { return w.attention == AttentionKernel::kFused ? 0 : 2 * e; }
  double elementwise(bool forward) const {
    return (n * share * m.hidden * (norm_bytes(forward) + residual_bytes(forward)) +
            n * (q() + kv()) * rotary_bytes(forward) + n * qkv() * copy_bytes() +
            n * ffn() * activation_bytes(forward)) /
               bandwidth +
           6 * gap();
  }

  /// Kernels that the host starts for a layer. Its time hides behind the device's, or the other way round.
  double launches(bool forward) const {
    double count = 12;
    count += w.fused_norm && !w.cast_norm ? 2 : 14;
    count += w.fused_activation ? 1 : 4;
    count += has_dropout(m) ? 4 : 2;
    count += m.position == PositionEmbedding::kRope ? (w.fused_rope ? 2 : 14) : 0;
    count += !keeps_scores() ? 4 : joined_softmax() ? 6 : 16;
    count += s.tensor > 1 ? 8 : 0;
    count += eight_bits_or_less(p.precision) ? 12 : 0;
    return count * (w.compiled ? k.compiled_share : 1) * (forward ? 1 : 1.7);
  }
  double with_host(double device, double kernels) const {
    const double host = kernels * k.host_launch, sum = device + host;
    return cpu() ? device : std::max({device, host, 0.5 * (1 + kTogether) * sum});
  }

  double tensor_comm(bool forward) const {
    if (s.tensor == 1) return 0;
    const double one = ring_seconds(e * n * m.hidden, s.tensor, group_link(p, s.tensor, 1));
    // Pieces under products need sequence parallelism and buffers that the link reaches.
    const bool pieces = w.overlap_tensor && s.sequence && s.tensor <= p.machine.local_world;
    const auto exposed = [](double exchanged, double work, double hidden) {
      return exchanged - hidden * std::min(exchanged, work);
    };
    const double gathered = s.sequence ? 2 * one : 0;  // inputs of the weights' gradients, once more
    if (forward) return exposed(4 * one, linears_forward(), pieces ? k.tensor_overlap : 0);
    if (pieces) return exposed(4 * one + gathered, linears_backward(), k.tensor_overlap);
    // The gradient's reduction runs beside the weights' gradients.
    return exposed(4 * one, 0.5 * linears_backward(), 0.5 * k.tensor_overlap) + gathered;
  }
  double context_comm(bool forward) const {
    if (s.context == 1) return 0;
    const Link link = group_link(p, s.context, s.tensor);
    const double bytes = 2 * e * n * kv() * (s.context - 1);
    const double sent = (forward ? 1 : 2) * (bytes / link.bandwidth + (s.context - 1) * link.latency);
    const double hidden = k.context_overlap * std::min(sent, attention(forward));
    return sent - hidden;
  }

  double vocab() const { return static_cast<double>(m.padded_vocab(s.tensor)) / s.tensor; }
  /// Columns of the logits that a device works on.
  double logit_columns() const { return w.gathered_logits ? vocab() * s.tensor : vocab(); }
  double head() const {  // forward and both gradients, and the softmax over the logits
    const double copies = w.fused_cross_entropy ? 8 : w.torch_loss ? 32 : 20;
    const double gather =
        w.gathered_logits ? ring_seconds(e * n * logit_columns(), s.tensor, group_link(p, s.tensor, 1)) : 0;
    return product(n, vocab(), m.hidden, peak) + product(n, m.hidden, vocab(), peak) +
           product(vocab(), m.hidden, n, peak) + stream(n * logit_columns() * copies) + gather;
  }
  /// A microbatch's gradients go to the buffer: read and written there, or made apart and then added.
  double accumulation(double parameters) const {
    const double bytes = p.half() ? w.gradient_bytes : 4;
    return parameters * (w.fused_gradients ? 2 * bytes : 2 * bytes + 2 * e) / bandwidth;
  }

  /// A whole layer again, and what keeping and restoring the state around it costs the host, in both passes.
  double full_again(const LayerPrice& price) const {
    const double device = linears_forward() + attention(true) + elementwise(true);
    const double pair = price.forward + price.backward;
    const double kernels = 2 * launches(true) + launches(false) + k.checkpoint_launches;
    return with_host(2 * device + linears_backward() + attention(false) + elementwise(false) +
                         accumulation(price.parameters.block),
                     kernels) -
           pair + price.forward_comm;
  }

  double op(std::string_view name, const Cost& cost) const {
    double rate = peak;
    if (name == Gemm::kName) rate = product_flops();
    if (name == Attention::kName) rate *= flash_rate();
    if (name == AttentionGrad::kName) rate *= flash_rate() * k.flash_backward;
    return smooth_max(cost.flops / rate, cost.bytes / bandwidth) + gap();
  }

  LayerPrice price() const {
    LayerPrice out;
    out.parameters = count_parameters(m, s.tensor);
    const double norm_act =
        (n * share * m.hidden * norm_bytes(true) + n * ffn() * activation_bytes(true)) / bandwidth;
    out.forward = with_host(linears_forward() + attention(true) + elementwise(true), launches(true));
    out.backward = with_host(
        linears_backward() + attention(false) + elementwise(false) + accumulation(out.parameters.block),
        launches(false));
    out.forward_comm = tensor_comm(true) + context_comm(true);
    out.backward_comm = tensor_comm(false) + context_comm(false);
    out.again_full = full_again(out);
    out.again_attention = attention(true);
    out.again_norm_act = norm_act;
    out.again_products = with_host(0.5 * linears_forward() + elementwise(true), launches(true));
    out.head = head() + accumulation(out.parameters.embedding);
    out.embedding = stream(n * m.hidden * share * (3 * e + 8));
    out.message = e * n * m.hidden * share;
    out.sent = out.message;
    if (w.scatters_messages && !s.sequence && s.tensor > 1) {
      out.sent = out.message / s.tensor;
      out.put_together = ring_seconds(out.message, s.tensor, group_link(p, s.tensor, 1));
    }
    keep(out);
    return out;
  }

  /// Bytes of a layer for its backward pass, tensor by tensor. Korthikanti et al. 2022, table 2, for GELU
  /// with dropout.
  void keep(LayerPrice& out) const {
    const double h = m.hidden;
    const double masks = has_dropout(m) ? 2 * h * share : 0;
    const double whole = w.keeps_gathered ? 1 : share;
    const double rows = 2 * e * h * (share + whole) + masks;  // norms' inputs and outputs, two dropout masks
    const double inner =
        w.fused_norm || w.compiled ? 0 : k.eager_kept * 12 * h * share;  // copies in eager norms
    const double core = keeps_scores() ? scores() / n * score_bytes() : 4.0 * m.heads / s.tensor;
    // PyTorch's rotation makes queries and keys anew, beside the projection that holds the values.
    const bool turned = m.position == PositionEmbedding::kRope && !w.fused_rope && !w.compiled;
    const double attention_rows = e * (qkv() + q() + (turned ? q() + kv() : 0));
    // 8-bit products keep their inputs in 8 bits.
    const double narrow = eight_bits_or_less(p.precision) ? 2 * h * share + ffn() : 0;
    const double inside = e * gates() * ffn(),
                 activated = e * ffn() * (w.fused_activation || w.compiled || !m.swiglu ? 1 : 2);
    out.kept = n * (rows + inner + attention_rows + core + inside + activated - narrow);
    out.kept_attention = out.kept - n * core;
    out.kept_norm_act = out.kept - n * (2 * e * h * share + inner + activated);
    out.kept_products =
        n * (2 * e * h * share + e * q() + 0.5 * (e * qkv() + inside) + 4.0 * m.heads / s.tensor);
    out.kept_full = n * e * h * share;
    out.kept_embedding = n * (8 + (has_dropout(m) ? h * share : 0));
    out.kept_head = 2 * e * n * h * share;
    const double copies = w.fused_cross_entropy ? 4 : k.logit_copies + (w.torch_loss && !w.compiled ? 6 : 0);
    const double rows_at_once = w.head_rows > 0 ? std::min<double>(n, w.head_rows) : n;
    out.logits = rows_at_once * logit_columns() * (p.half() ? copies : w.head_rows > 0 ? 4 : 8);
    // While a layer's attention runs: its raw scores, and two gradients of them.
    out.transient = (s.sequence ? 2 * e * n * h : 0) + (keeps_scores() ? 3 * e * scores() : 0);
  }
  double score_bytes() const {  // kept for each element of the scores
    const double softmax = e, drop = m.attention_dropout > 0 ? 1 + e : 0;
    const double before = w.attention == AttentionKernel::kFusedSoftmax && w.keeps_softmax_input ? e : 0;
    return softmax + drop + before + (w.attention == AttentionKernel::kTorch ? 4 : 0);  // PyTorch's in fp32
  }
};

}  // namespace

ParameterCount count_parameters(const ModelConfig& m, int tensor) {
  const double h = m.hidden, f = m.ffn_hidden, t = tensor;
  const double qkv = query_width(m) / t + 2 * local_key_width(m, tensor);
  ParameterCount count;
  count.block = h * qkv + query_width(m) / t * h + (gates(m) + 1) * h * f / t + 2 * norm_width(m);
  if (m.has_qkv_bias()) count.block += qkv;
  if (m.linear_bias) count.block += h + gates(m) * f / t + h;
  const double table = static_cast<double>(m.padded_vocab(tensor)) * h / t;
  count.embedding = table;
  if (m.position == PositionEmbedding::kLearned) count.embedding += static_cast<double>(m.max_positions) * h;
  count.head = norm_width(m) + (m.untied_head ? table : 0);
  count.head_copy = m.untied_head ? 0 : table;
  return count;
}

double total_parameters(const ModelConfig& m) {
  ModelConfig unpadded = m;
  unpadded.vocab_divisor = 1;
  const ParameterCount count = count_parameters(unpadded, 1);
  return count.block * m.layers + count.embedding + count.head;
}

double sustained_flops(const PlanProblem& p) {
  const Accelerator& d = p.machine.device;
  const double peak = p.half() ? d.half_flops : d.float_flops;
  if (d.multiprocessors == 0 || d.watts <= 0 || d.half_flops <= 0) return peak;
  // A device that has less power for each operation than an A100 cannot hold its clock.
  constexpr double kReference = 400 / 312e12;  // W s / FLOP
  const double power = d.watts / d.half_flops / kReference;
  return peak * std::min(0.98, p.coefficients->sustained_clock *
                                   std::pow(power, p.coefficients->clock_power_exponent));
}

Link group_link(const PlanProblem& p, int ranks, int stride) {
  const Coefficients& k = *p.coefficients;
  const Accelerator& d = p.machine.device;
  const int domain = p.machine.local_world;
  if (ranks * stride <= domain || p.machine.world <= domain)
    return {k.link_rate * d.link_bandwidth, k.link_latency};
  const double neighbours = std::max(1, domain / stride);  // ranks of the group on one machine
  const double machines = ranks / neighbours;
  const double lost = 1 + k.congestion * (machines > 2 ? std::log2(machines / 2) : 0);
  return {std::min(k.network_rate * d.network_bandwidth * neighbours / lost, k.link_rate * d.link_bandwidth),
          k.network_latency};
}

double ring_seconds(double bytes, int ranks, Link link) {
  if (ranks <= 1) return 0;
  const double hops =
      ranks <= 16 ? ranks - 1.0 : 15 + std::log2(ranks / 16.0);  // long rings give way to trees
  return (ranks - 1.0) / ranks * bytes / link.bandwidth + hops * link.latency;
}

double LayerPrice::again(Recomputed what) const {
  switch (what) {
    case Recomputed::kNone:
      return 0;
    case Recomputed::kAttention:
      return again_attention;
    case Recomputed::kNormAct:
      return again_norm_act;
    case Recomputed::kProducts:
      return again_products;
    case Recomputed::kFull:
      return again_full;
  }
  return 0;
}

double LayerPrice::kept_of(Recomputed what) const {
  switch (what) {
    case Recomputed::kNone:
      return kept;
    case Recomputed::kAttention:
      return kept_attention;
    case Recomputed::kNormAct:
      return kept_norm_act;
    case Recomputed::kProducts:
      return kept_products;
    case Recomputed::kFull:
      return kept_full;
  }
  return kept;
}

Layout layout_of(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  Layout out;
  const bool named = !p.stage_layers.empty();
  const int last = c.pipeline - 1;
  const auto add = [&](int stage, int times) {
    if (times > 0) out.kinds.push_back({stage, stage_layers(p, c, stage), static_cast<double>(times)});
  };
  if (named) {
    for (int stage = 0; stage <= last; ++stage) add(stage, 1);
  } else {
    add(0, 1);
    if (last > 1) {  // the middle stages differ by one layer at most, and the later ones have more
      const int few = stage_layers(p, c, 1), many = stage_layers(p, c, last - 1), middle = last - 1;
      const int inside = p.model.layers - stage_layers(p, c, 0) - stage_layers(p, c, last);
      const int more = many > few ? inside - middle * few : 0;
      add(1, middle - more);
      add(last - more, more);
    }
    if (last > 0) add(last, 1);
  }
  const int stride = c.tensor * c.context * c.data;
  out.data = group_link(p, c.data * c.context, c.tensor);
  out.message = group_link(p, 2, stride);
  if (last > 0 && price.parameters.head_copy > 0) {
    const double bytes = p.half() ? p.software.gradient_bytes : 4;
    out.tied = 2 * ring_seconds(bytes * price.parameters.head_copy, 2, group_link(p, 2, stride * last));
  }
  const double machines = static_cast<double>(p.machine.world) / p.machine.local_world;
  out.machine_doublings = machines > 1 ? std::log2(machines) : 0;
  return out;
}

double op_seconds(const PlanProblem& p, std::string_view op, const Cost& cost) {
  const LayerShape shape;
  return Pricer{p, shape}.op(op, cost);
}

LayerPrice price_layer(const PlanProblem& p, const LayerShape& shape) {
  return Pricer{p, shape}.price();
}

}  // namespace megalith
