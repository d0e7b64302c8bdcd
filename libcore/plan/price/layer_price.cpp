#include "libcore/plan/price/layer_price.h"

#include <algorithm>
#include <cmath>

#include "libcore/ops/attention.h"
#include "libcore/ops/linear.h"
#include "libcore/plan/price/expert_price.h"
#include "libcore/plan/price/kernel_rates.h"

namespace megalith {
namespace {

bool has_dropout(const ModelConfig& m) {
  return m.hidden_dropout > 0;
}
/// Prices one LayerShape. n: tokens of a microbatch on a device before any cut along the sequence by the
/// tensor ranks.
struct Pricer : KernelRates {
  Pricer(const PlanProblem& problem, const LayerShape& shape, bool has_experts)
      : KernelRates(problem), s(shape), routed(has_experts) {
    if (routed) experts = price_experts(*this, s);
  }

  const LayerShape& s;
  const bool routed;  // the layer has experts
  const ModelShape& m = p.model;
  const Software& w = p.software;
  double n = static_cast<double>(m.seq_length) * s.micro_batch / s.context;
  double share = s.sequence ? 1.0 / s.tensor : 1.0;
  ExpertPrice experts = {};

  double q() const { return m.query_width() / s.tensor; }
  /// Keys; latent attention makes those of every head.
  double kv() const { return m.latent_attention ? q() : local_key_width(m, s.tensor); }
  double attended() const { return m.output_width() / s.tensor; }  // values' sums, on their way out
  double qkv() const { return m.latent_attention ? 2 * q() + attended() : q() + 2 * kv(); }
  /// What every token passes after attention: the dense block, or the shared experts.
  double ffn() const { return static_cast<double>(routed ? m.shared_ffn : m.ffn_hidden) / s.tensor; }
  double scores() const { return n * m.seq_length * m.heads / s.tensor; }  // elements of the [s, s] matrices
  bool keeps_scores() const {
    return w.attention == AttentionKernel::kTorch || w.attention == AttentionKernel::kFusedSoftmax;
  }
  double layer_product(double out, double in) const { return product(n, out, in, product_flops()); }

  /// Applies `one` to the sizes of the products before attention: the joined projection of queries, keys and
  /// values, or those of latent attention down to the ranks and up to the heads.
  double sum_inputs(const auto& one) const {
    if (!m.latent_attention) return one(qkv(), m.hidden);
    const double keys = static_cast<double>(m.heads) * (m.key_channels + m.value_channels) / s.tensor;
    const double queries =
        m.query_rank > 0 ? one(m.query_rank, m.hidden) + one(q(), m.query_rank) : one(q(), m.hidden);
    return queries + one(m.key_rank + m.key_rotated, m.hidden) + one(keys, m.key_rank);
  }
  double linears_forward() const {
    const auto one = [&](double out, double in) { return layer_product(out, in); };
    return sum_inputs(one) + layer_product(m.hidden, attended()) + block(true) + narrowing(1);
  }
  /// A product's gradients.
  double both(double out, double in) const {
    return layer_product(in, out) + product(out, in, n, product_flops());
  }
  double linears_backward() const {
    const auto one = [&](double out, double in) { return both(out, in); };
    return sum_inputs(one) + both(m.hidden, attended()) + block(false) + narrowing(2);
  }
  /// The products of the dense block, or of the shared experts.
  double block(bool forward) const {
    return forward ? layer_product(gates() * ffn(), m.hidden) + layer_product(m.hidden, ffn())
                   : both(gates() * ffn(), m.hidden) + both(m.hidden, ffn());
  }
  double gates() const { return megalith::gates(m); }
  /// Casts of the products' inputs to 8 bits and less: read, and written in both orders.
  double narrowing(double times) const {
    if (!narrow()) return 0;
    return times * stream(n * (2 * m.hidden + q() + ffn()) * (e + 2));
  }

  double attention_flops() const {  // two products, half of them masked
    return n * m.seq_length * (q() + attended());
  }
  /// Channels of a head, the mean of both products.
  double channels() const { return 0.5 * (m.query_channels() + m.output_channels()); }
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
      const double rate = peak * flash_rate(channels()) * (forward ? 1 : k.flash_backward);
      return (forward ? 1 : 2.5) * attention_flops() / rate + gap();
    }
    const double depth = channels() / (channels() + k.head_half_depth);
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
    count += narrow() ? 12 : 0;
    count += m.latent_attention ? 10 : 0;  // four more products, two norms, heads put together
    count += experts.launches;
    return count * (w.compiled ? k.compiled_share : 1) * (forward ? 1 : 1.7);
  }
  double tensor_comm(bool forward) const {
    if (s.tensor == 1) return 0;
    const double one = ring_seconds(e * n * m.hidden, s.tensor, group_link(p, s.tensor, 1));
    // Pieces under products need sequence parallelism and buffers that the link reaches.
    const bool pieces = w.overlap_tensor && s.sequence && s.tensor <= p.machine.domain();
    const auto exposed = [](double exchanged, double work, double hidden) {
      return exchanged - hidden * std::min(exchanged, work);
    };
    // Around attention, and around the dense block or the shared experts.
    const double blocks = routed && m.shared_ffn == 0 ? 1 : 2, all = 2 * blocks * one;
    const double gathered = s.sequence ? blocks * one : 0;  // inputs of the weights' gradients, once more
    if (forward) return exposed(all, linears_forward(), pieces ? k.tensor_overlap : 0);
    if (pieces) return exposed(all + gathered, linears_backward(), k.tensor_overlap);
    // The gradient's reduction runs beside the weights' gradients.
    return exposed(all, 0.5 * linears_backward(), 0.5 * k.tensor_overlap) + gathered;
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

  double forward_work() const {
    return linears_forward() + attention(true) + elementwise(true) + experts.forward;
  }
  double backward_work() const {
    return linears_backward() + attention(false) + elementwise(false) + experts.backward;
  }
  /// What other microbatches' work, or the shared experts', does not hide of the tokens' way to the experts
  /// and back.
  double exchange(bool forward) const {
    const double beside = w.overlap_exchange ? forward ? forward_work() : backward_work()
                          : m.shared_overlap ? block(forward)
                                             : 0;
    return experts.exchange - k.exchange_overlap * std::min(experts.exchange, beside);
  }

  /// A whole layer again in the backward pass, and what keeping and restoring the state around it costs the
  /// host.
  double full_again(const LayerCost& once, double parameters) const {
    const double kernels = launches(true) + launches(false) + k.checkpoint_launches;
    const double sent = once.forward_sent() + once.backward_sent();
    return with_host(forward_work() + backward_work() + accumulation(parameters) + sent, kernels) -
           once.backward_seconds();
  }

  double op(std::string_view name, const Cost& cost) const {
    double rate = peak;
    if (name == Gemm::kName) rate = product_flops();
    if (name == Attention::kName) rate *= flash_rate(channels());
    if (name == AttentionGrad::kName) rate *= flash_rate(channels()) * k.flash_backward;
    return smooth_max(cost.flops / rate, cost.bytes / bandwidth) + gap();
  }

  /// A layer of which a device holds `parameters`.
  LayerCost layer(double parameters) const {
    LayerCost out;
    out.forward_exchange = exchange(true);
    out.backward_exchange = exchange(false);
    out.forward_comm = tensor_comm(true) + context_comm(true);
    out.backward_comm = tensor_comm(false) + context_comm(false);
    // The host starts further kernels while ranks exchange: a layer that it holds up is not held up once more
    // by what faster products no longer hide.
    out.forward = with_host(forward_work() + out.forward_sent(), launches(true)) - out.forward_sent();
    out.backward =
        with_host(backward_work() + accumulation(parameters) + out.backward_sent(), launches(false)) -
        out.backward_sent();
    out.again_full = full_again(out, parameters);
    out.again_attention = attention(true);
    out.again_norm_act =
        (n * share * m.hidden * norm_bytes(true) + n * ffn() * activation_bytes(true)) / bandwidth +
        experts.activation;
    out.again_products =
        with_host(0.5 * (linears_forward() + experts.forward) + elementwise(true), launches(true));
    keep(out);
    return out;
  }

  /// Layers that predict further tokens, each before the head once more.
  double predictions(const LayerCost& layer) const {
    const double joined = 2.0 * m.hidden / s.tensor;
    return layer.seconds() + layer_product(m.hidden, joined) + both(m.hidden, joined) + head();
  }

  LayerPrice price() const {
    LayerPrice out;
    out.parameters =
        count_parameters(m, {.tensor = s.tensor, .expert = s.expert, .expert_tensor = s.expert_tensor});
    static_cast<LayerCost&>(out) = layer(out.parameters.block + out.parameters.experts);
    if (m.plain_layers(m.layers) > 0) out.plain = Pricer(p, s, false).layer(out.parameters.plain_block);
    out.head = head() + accumulation(out.parameters.embedding);
    if (m.predicted > 0) out.head += m.predicted * predictions(out);
    out.embedding = stream(n * m.hidden * share * (3 * e + 8));
    out.message = e * n * m.hidden * share;
    out.sent = out.message;
    if (w.scatters_messages && !s.sequence && s.tensor > 1) {
      out.sent = out.message / s.tensor;
      out.put_together = ring_seconds(out.message, s.tensor, group_link(p, s.tensor, 1));
    }
    keep_ends(out);
    return out;
  }

  /// Bytes of a layer for its backward pass, tensor by tensor. Korthikanti et al. 2022, table 2, for GELU
  /// with dropout.
  void keep(LayerCost& out) const {
    const double h = m.hidden;
    const double masks = has_dropout(m) ? 2 * h * share : 0;
    const double whole = w.keeps_gathered ? 1 : share;
    const double rows = 2 * e * h * (share + whole) + masks;  // norms' inputs and outputs, two dropout masks
    const double inner =
        w.fused_norm || w.compiled ? 0 : k.eager_kept * 12 * h * share;  // copies in eager norms
    const double core = keeps_scores() ? scores() / n * score_bytes() : 4.0 * m.heads / s.tensor;
    // PyTorch's rotation makes queries and keys anew, beside the projection that holds the values.
    const bool turned = m.position == PositionEmbedding::kRope && !w.fused_rope && !w.compiled;
    // What latent attention compresses to is kept before and after its norm.
    const double ranks = m.latent_attention ? 2.0 * (m.query_rank + m.key_rank) + m.key_rotated : 0;
    const double attention_rows = e * (qkv() + attended() + (turned ? q() + kv() : 0) + ranks);
    // 8-bit products keep their inputs in 8 bits.
    const double saved = narrow() ? 2 * h * share + ffn() : 0;
    const double inside = e * gates() * ffn(),
                 activated = e * ffn() * (w.fused_activation || w.compiled || !m.swiglu ? 1 : 2);
    out.kept = n * (rows + inner + attention_rows + core + inside + activated - saved) + experts.kept;
    out.kept_attention = out.kept - n * core;
    out.kept_norm_act = out.kept - n * (2 * e * h * share + inner + activated) - experts.kept_act;
    out.kept_products =
        n * (2 * e * h * share + e * attended() + 0.5 * (e * qkv() + inside) + 4.0 * m.heads / s.tensor) +
        0.5 * experts.kept;
    out.kept_full = n * e * h * share;
  }
  /// Bytes of what stands before and after the layers, and of what stands only while a layer runs.
  void keep_ends(LayerPrice& out) const {
    const double h = m.hidden;
    out.kept_embedding = n * (8 + (has_dropout(m) ? h * share : 0));
    out.kept_head = 2 * e * n * h * share;
    if (m.predicted > 0) out.kept_head += m.predicted * (out.kept + 4 * e * n * h * share);
    const double copies = w.fused_cross_entropy ? 4 : k.logit_copies + (w.torch_loss && !w.compiled ? 6 : 0);
    const double rows_at_once = w.head_rows > 0 ? std::min<double>(n, w.head_rows) : n;
    out.logits = rows_at_once * logit_columns() * (p.half() ? copies : w.head_rows > 0 ? 4 : 8);
    // While a layer's attention runs: its raw scores, and two gradients of them.
    out.transient =
        (s.sequence ? 2 * e * n * h : 0) + (keeps_scores() ? 3 * e * scores() : 0) + experts.transient;
  }
  double score_bytes() const {  // kept for each element of the scores
    const double softmax = e, drop = m.attention_dropout > 0 ? 1 + e : 0;
    const double before = w.attention == AttentionKernel::kFusedSoftmax && w.keeps_softmax_input ? e : 0;
    return softmax + drop + before + (w.attention == AttentionKernel::kTorch ? 4 : 0);  // PyTorch's in fp32
  }
};

/// A layer that is `share` of the second one and for the rest the first.
LayerCost between(const LayerCost& first, const LayerCost& second, double share) {
  constexpr double LayerCost::*kAll[] = {&LayerCost::forward,
                                         &LayerCost::backward,
                                         &LayerCost::forward_comm,
                                         &LayerCost::backward_comm,
                                         &LayerCost::forward_exchange,
                                         &LayerCost::backward_exchange,
                                         &LayerCost::again_attention,
                                         &LayerCost::again_norm_act,
                                         &LayerCost::again_products,
                                         &LayerCost::again_full,
                                         &LayerCost::kept,
                                         &LayerCost::kept_attention,
                                         &LayerCost::kept_norm_act,
                                         &LayerCost::kept_products,
                                         &LayerCost::kept_full};
  static_assert(sizeof(kAll) / sizeof(*kAll) * sizeof(double) == sizeof(LayerCost));
  LayerCost out;
  for (const auto part : kAll) out.*part = (1 - share) * first.*part + share * second.*part;
  return out;
}

/// One stage after the other; where the user did not name them, those that are alike and follow each other
/// as one.
std::vector<Layout::Kind> every_stage(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  std::vector<Layout::Kind> kinds;
  for (int stage = 0; stage < c.pipeline; ++stage) {
    const Layout::Kind kind = stage_kind(p, c, price, stage);
    const bool apart = !p.stage_layers.empty() || stage <= 1 || stage == c.pipeline - 1;
    if (!apart && kinds.back().layers == kind.layers && kinds.back().plain == kind.plain)
      ++kinds.back().times;
    else
      kinds.push_back(kind);
  }
  return kinds;
}

std::vector<Layout::Kind> stage_kinds(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  if (!p.stage_layers.empty() || p.model.plain_layers(p.model.layers) > 0) return every_stage(p, c, price);
  std::vector<Layout::Kind> kinds;
  const int last = c.pipeline - 1;
  const auto add = [&](int stage, int times) {
    if (times > 0) kinds.push_back({stage, stage_layers(p, c, stage), static_cast<double>(times)});
  };
  add(0, 1);
  if (last > 1) {  // the middle stages differ by one layer at most, and the later ones have more
    const int few = stage_layers(p, c, 1), many = stage_layers(p, c, last - 1), middle = last - 1;
    const int inside = p.model.layers - stage_layers(p, c, 0) - stage_layers(p, c, last);
    const int more = many > few ? inside - middle * few : 0;
    add(1, middle - more);
    add(last - more, more);
  }
  if (last > 0) add(last, 1);
  return kinds;
}

}  // namespace

Link group_link(const PlanProblem& p, int ranks, int stride) {
  const Coefficients& k = *p.coefficients;
  const Accelerator& d = p.machine.device;
  const int domain = p.machine.domain();
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

double LayerCost::again(Recomputed what) const {
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

double LayerCost::kept_of(Recomputed what) const {
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

Layout::Kind stage_kind(const PlanProblem& p, const Candidate& c, const LayerPrice& price, int stage) {
  Layout::Kind kind{.stage = stage,
                    .layers = stage_layers(p, c, stage),
                    .times = 1,
                    .plain = stage_plain_layers(p, c, stage)};
  if (kind.plain > 0) kind.mean = between(price, price.plain, static_cast<double>(kind.plain) / kind.layers);
  return kind;
}

Layout layout_of(const PlanProblem& p, const Candidate& c, const LayerPrice& price) {
  Layout out;
  out.kinds = stage_kinds(p, c, price);
  const int last = c.pipeline - 1, stride = c.tensor * c.context * c.data;
  out.data = group_link(p, c.data * c.context, c.tensor);
  out.message = group_link(p, 2, stride);
  if (p.model.has_experts()) out.expert_data = group_link(p, c.expert_data(), c.expert * c.expert_tensor);
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
  return Pricer(p, shape, false).op(op, cost);
}

LayerPrice price_layer(const PlanProblem& p, const LayerShape& shape) {
  return Pricer(p, shape, p.model.has_experts()).price();
}

}  // namespace megalith
