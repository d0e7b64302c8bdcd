#include "libcore/plan/price/layer_price.h"

#include <algorithm>
#include <cmath>

#include "libcore/ops/attention.h"
#include "libcore/ops/linear.h"
#include "libcore/plan/price/adapter_price.h"
#include "libcore/plan/price/exchanged.h"
#include "libcore/plan/price/expert_price.h"
#include "libcore/plan/price/kernel_rates.h"
#include "libcore/plan/price/links.h"

namespace megalith {
namespace {

/// Two figures, for the forward and the backward pass.
struct Passes {
  double forward, backward;
  double of(bool is_forward) const { return is_forward ? forward : backward; }
};

// Numbers of this file that are neither on a data sheet nor fitted (device/coefficients.cpp). "Count": what
// the operator reads, writes or computes by its definition. "Belief": an estimate made before any fit and
// kept because the measured runs agree with it (docs/planner.md, "How far off"); the coefficient that
// multiplies it was fitted with this value in place. A pass over a tensor reads or writes each of its
// elements once.

constexpr double kFp32 = 4;            // bytes
constexpr double kReadAndWritten = 2;  // passes over memory that is changed in place; count

// Products below 16 bits.
constexpr double kCopiesBelow16Bits = 2;  // bytes: an 8-bit copy in each of two orders; count
// Tensors that a product reads in each pass and that are narrowed for it; count.
constexpr Passes kTensorsBelow16Bits{1, 2};
/// Products whose input has the hidden width: queries, keys and values, and the block's first; count.
constexpr double kHiddenInputs = 2;

// Attention. A causal mask leaves half of the scores; kernels that do not store the scores compute only that
// half.
constexpr Passes kFlashWork{1, 2.5};  // times masked_flops(): 2 products, then 5 (Dao 2023, arXiv 2307.08691)
constexpr Passes kKeptWork{2, 4};     // times masked_flops(); 2 products, then 4, on all scores; count
constexpr Passes kKeptKernels{4, 8};  // kernels: products, softmax, dropout; count
constexpr Passes kSoftmaxPasses{4, 7};  // passes over the scores, for products and a fused softmax; count
/// The passes that dropout adds: one read, one written, a mask of one byte; count.
constexpr Passes kDropoutPasses{2.5, 2.5};
/// The longest sequence that Megatron's fused kernel supports (rule F1).
constexpr int kJoinedSoftmaxTokens = 16384;
constexpr int kJoinedSoftmaxHeads = 4;  // that kernel needs a multiple of this many heads * samples (F1)
constexpr int kMatrixChannels = 8;      // 16-bit channels in the 16-byte words of the matrix units; count
constexpr double kLogSumExp = kFp32;    // bytes per head and token that kernels without scores keep; count

// Memory-bound work: passes over activations; a layer has two norms and two residual sums.
constexpr double kNorms = 2, kResiduals = 2;
constexpr Passes kNormPasses{2, 4};  // passes with a fused kernel, including the residual's gradient; count
/// Bytes that PyTorch's operators add, in fp32; belief.
constexpr Passes kEagerNormBytes{8 * kFp32, 19 * kFp32};
constexpr Passes kResidualPasses{3, 2};  // passes of a residual sum; dropout adds a mask of one byte; count
constexpr double kRotaryPasses = 2;      // passes with a fused kernel; count
/// Rotary passes by PyTorch's operators: halves, two products, a sum; belief.
constexpr double kEagerRotaryPasses = 10;
constexpr Passes kRotaryShare{1, 1.2};          // share of the rotary passes in each pass of training; belief
constexpr Passes kEagerActivationPasses{2, 4};  // passes that one PyTorch operator per step adds; count
constexpr double kCopyPasses = 2;               // passes over the qkv projection to split or join it; count
constexpr double kElementKernels = 6;           // kernels: two norms, two sums, rotation, activation; count
/// The embedding: passes over memory (row, result, gradient), and bytes of the sum in fp32; count. A frozen
/// one has no gradient.
constexpr double kEmbeddingPasses = 3, kFrozenEmbeddingPasses = 2, kEmbeddingBytes = 2 * kFp32;

// Kernels that the host starts for a layer's forward pass. Beliefs: the host's time for one of them
// (host_launch) was fitted with these numbers in place, so only their proportions matter, not their sum.
constexpr double kLayerKernels = 12;  // products, their biases, views that copy
constexpr double kFusedNormKernels = 2, kEagerNormKernels = 14;
constexpr double kFusedActivationKernels = 1, kEagerActivationKernels = 4;
/// For both residual sums: with dropout, and without it.
constexpr double kDropoutKernels = 4, kResidualKernels = 2;
constexpr double kFusedRotaryKernels = 2, kEagerRotaryKernels = 14;
constexpr double kFlashKernels = 4, kJoinedSoftmaxKernels = 6, kTorchSoftmaxKernels = 16;
constexpr double kTensorKernels = 8;    // collectives of tensor ranks, and kernels that wait for them
constexpr double kCastKernels = 12;     // products below 16 bits: casts, scales
constexpr double kLatentKernels = 10;   // four more products, two norms, joining the heads
constexpr Passes kPassKernels{1, 1.7};  // kernels of each pass, relative to all these

// What ranks exchange.
constexpr double kWeightGradients = 0.5;  // share of backward products that run during an exchange; count
// Share of tensor_overlap that the reduction of the input's gradient reaches; belief.
constexpr double kPartOfOverlap = 0.5;
/// How often context ranks exchange keys and values: backward these again, and their gradients; count.
constexpr Passes kContextRounds{1, 2};

// The head's logits: bytes per logit that are moved in a step, and bytes per logit that are kept.
constexpr double kFusedLossBytes = 8;        // belief
constexpr double kTorchLossBytes = 32;       // belief
constexpr double kMegatronLossBytes = 20;    // belief
constexpr double kFusedLossKept = 4;         // one copy in fp32; count
constexpr double kTorchLossKept = 6;         // bytes besides logit_copies: in fp32 and in 16 bits; count
constexpr double kFp32LossKept = 2 * kFp32;  // logits and their gradient; count
constexpr double kRowsLossKept = kFp32;      // the gradient replaces the logits; model/head.cpp

// Bytes that a layer keeps for its backward pass: Korthikanti et al. 2022 (arXiv 2205.05198), table 2.
constexpr double kMask = 1;                      // bytes per element of a dropout mask
constexpr double kNormCopies = 2 * (kFp32 + 2);  // of two norms by PyTorch's operators, per element: an
                                                 // fp32 and a 16-bit copy, times eager_kept; count
constexpr double kAroundNorm = 2;  // a norm's kept input and result: head, latent attention; count
constexpr double kPredictionKept = 2 * kAroundNorm;  // the previous token's state and an embedding; count
constexpr double kActivated = 1;       // kept results of the activation, with a fused kernel; count
constexpr double kEagerActivated = 2;  // with PyTorch's operators also SiLU's result before the gate; count
/// Share of the products whose results torchtitan's selective-op keeps: every second one
/// (torchtitan/distributed/activation_checkpoint.py). As many are computed again; count.
constexpr double kEverySecond = 0.5;
constexpr double kTokenId = 8;          // bytes per input of the embedding (int64)
constexpr double kScoreTransients = 3;  // a layer's raw scores and two gradients of scores; count
constexpr double kGathered = 2;         // a layer's input with all tensor ranks' parts, and its gradient

bool has_dropout(const ModelConfig& m) {
  return m.hidden_dropout > 0;
}

/// Prices one LayerShape. n: tokens of a microbatch on a device before the tensor ranks split the sequence.
struct Pricer : KernelRates {
  Pricer(const PlanProblem& problem, const LayerShape& shape, bool has_experts)
      : KernelRates(problem), s(shape), routed(has_experts) {
    if (routed) experts = price_experts(*this, s);
  }

  const LayerShape& s;
  const bool routed;  // whether the layer has experts
  const ModelShape& m = p.model;
  const Software& w = p.software;
  double n = static_cast<double>(m.seq_length) * s.micro_batch / s.context;
  double share = s.sequence ? 1.0 / s.tensor : 1.0;
  const ExchangedTensors in_transit = exchanged_tensors(p, s);
  ExpertPrice experts = {};
  const AdapterPrice adapters = price_adapters(*this, s);

  double q() const { return m.query_width() / s.tensor; }
  /// Width of the keys; latent attention computes keys for every head.
  double kv() const { return m.latent_attention ? q() : local_key_width(m, s.tensor); }
  // Width of the input of the output projection.
  double attended() const { return m.output_width() / s.tensor; }
  double qkv() const { return m.latent_attention ? 2 * q() + attended() : q() + 2 * kv(); }
  /// Width of the feed-forward part that every token passes: the dense block, or the shared experts.
  double ffn() const { return static_cast<double>(routed ? m.shared_ffn : m.ffn_hidden) / s.tensor; }
  double scores() const { return n * m.seq_length * m.heads / s.tensor; }  // elements of the [s, s] matrices
  bool keeps_scores() const { return megalith::keeps_scores(w.attention); }
  double layer_product(double out, double in) const { return product(n, out, in, product_flops()); }

  /// The sum of one(…) over the sizes of the products before attention: the joint projection of queries, keys
  /// and values, or latent attention's projections down to the ranks and up to the heads.
  double sum_inputs(const auto& one) const {
    if (!m.latent_attention) return one(qkv(), m.hidden);
    const double keys = static_cast<double>(m.heads) * (m.key_channels + m.value_channels) / s.tensor;
    const double queries =
        m.query_rank > 0 ? one(m.query_rank, m.hidden) + one(q(), m.query_rank) : one(q(), m.hidden);
    return queries + one(m.key_rank + m.key_rotated, m.hidden) + one(keys, m.key_rank);
  }
  double linears_forward() const {
    const auto one = [&](double out, double in) { return layer_product(out, in); };
    return sum_inputs(one) + layer_product(m.hidden, attended()) + block(true) +
           narrowing(kTensorsBelow16Bits.forward);
  }
  /// Seconds of the gradients of a product: of its input and, unless it is frozen, of its matrix.
  double both(double out, double in) const {
    return layer_product(in, out) + (frozen() ? 0 : product(out, in, n, product_flops()));
  }
  bool frozen() const { return p.tuning.adapts(); }
  double linears_backward() const {
    const auto one = [&](double out, double in) { return both(out, in); };
    return sum_inputs(one) + both(m.hidden, attended()) + block(false) +
           narrowing(kTensorsBelow16Bits.backward);
  }
  /// The products of the dense block, or of the shared experts.
  double block(bool forward) const {
    return forward ? layer_product(gates() * ffn(), m.hidden) + layer_product(m.hidden, ffn())
                   : both(gates() * ffn(), m.hidden) + both(m.hidden, ffn());
  }
  double gates() const { return megalith::gates(m); }
  /// Casts of the products' inputs to 8 bits or less: each is read, and written in both orders.
  double narrowing(double tensors) const {
    if (!narrow()) return 0;
    return tensors * stream(n * (kHiddenInputs * m.hidden + q() + ffn()) * (e + kCopiesBelow16Bits));
  }

  // Operations of attention's two products under a causal mask, in a forward pass.
  double masked_flops() const { return n * m.seq_length * (q() + attended()); }
  /// Channels per head: the mean over the two products of attention.
  double channels() const { return 0.5 * (m.query_channels() + m.output_channels()); }
  /// Passes over the scores in memory.
  double score_passes(bool forward) const {
    const double drop = m.attention_dropout > 0 ? 1 : 0;
    const double joined = kSoftmaxPasses.of(forward) + kDropoutPasses.of(forward) * drop;
    return joined + (joined_softmax() ? 0 : k.torch_passes);
  }
  /// F1: whether one kernel scales, masks and normalises the scores.
  bool joined_softmax() const {
    return w.attention == AttentionKernel::kFusedSoftmax && m.seq_length <= kJoinedSoftmaxTokens &&
           m.heads / s.tensor * s.micro_batch % kJoinedSoftmaxHeads == 0;
  }
  /// The matrix units read rows in whole 16-byte words. A head of 108 or 150 16-bit channels is not a whole
  /// number of words, so its products run on the vector units, at the data sheet's fp32 rate.
  double score_flops() const {
    return cpu() || !p.half() || m.kv_channels % kMatrixChannels == 0 ? peak : k.vector_rate * d.float_flops;
  }
  double attention(bool forward) const {
    if (!keeps_scores()) {
      const double rate = flash_flops(channels()) * (forward ? 1 : k.flash_backward);
      return kFlashWork.of(forward) * masked_flops() / rate + gap();
    }
    const double depth = channels() / (channels() + k.head_half_depth);
    const double products = kKeptWork.of(forward) * masked_flops() / (score_flops() * depth);
    return products + score_passes(forward) * scores() * e / bandwidth + kKeptKernels.of(forward) * gap();
  }

  double norm_bytes(bool forward) const {  // bytes that a layer's norms move per element of the hidden size
    const double fused = kNormPasses.of(forward) * e;
    const bool eager = !(w.fused_norm && !w.cast_norm) && !w.compiled;
    return m.layer_norms() * (eager ? fused + kEagerNormBytes.of(forward) : fused);
  }
  double residual_bytes(bool forward) const {
    return kResiduals * (kResidualPasses.of(forward) * e + (has_dropout(m) ? kMask : 0));
  }
  double rotary_bytes(bool forward) const {
    if (m.position != PositionEmbedding::kRope) return 0;
    return kRotaryShare.of(forward) *
           (w.fused_rope || w.compiled ? kRotaryPasses * e : kEagerRotaryPasses * e);
  }
  // Bytes that the activation moves per element of the feed-forward size.
  double activation_bytes(bool forward) const {
    // Forward: reads the gates, writes the result. Backward: reads the gates and a gradient, writes the
    // gates' gradients.
    const double fused = forward ? gates() + 1 : 2 * gates() + 1;
    return e * (fused + (w.fused_activation || w.compiled ? 0 : kEagerActivationPasses.of(forward)));
  }
  /// The qkv projection is split in memory, and its gradient joined there, unless the attention kernel reads
  /// the whole projection.
  double copy_bytes() const { return w.attention == AttentionKernel::kFused ? 0 : kCopyPasses * e; }
  double elementwise(bool forward) const {
    return (n * share * m.hidden * (norm_bytes(forward) + residual_bytes(forward)) +
            n * (q() + kv()) * rotary_bytes(forward) + n * qkv() * copy_bytes() +
            n * ffn() * activation_bytes(forward)) /
               bandwidth +
           kElementKernels * gap();
  }

  /// Kernels that the host starts for a layer. Host and device work at the same time, so the shorter of their
  /// times is hidden.
  double launches(bool forward) const {
    // A graph has fixed shapes, but the numbers of experts' tokens vary.
    if (w.cuda_graphs) return experts.launches * kPassKernels.of(forward);
    double count = kLayerKernels;
    count += w.fused_norm && !w.cast_norm ? kFusedNormKernels : kEagerNormKernels;
    count += w.fused_activation ? kFusedActivationKernels : kEagerActivationKernels;
    count += has_dropout(m) ? kDropoutKernels : kResidualKernels;
    if (m.position == PositionEmbedding::kRope)
      count += w.fused_rope ? kFusedRotaryKernels : kEagerRotaryKernels;
    count += !keeps_scores()    ? kFlashKernels
             : joined_softmax() ? kJoinedSoftmaxKernels
                                : kTorchSoftmaxKernels;
    count += s.tensor > 1 ? kTensorKernels : 0;
    count += narrow() ? kCastKernels : 0;
    count += m.latent_attention ? kLatentKernels : 0;
    count += experts.launches + adapters.launches;
    return count * (w.compiled ? k.compiled_share : 1) * kPassKernels.of(forward);
  }
  /// Seconds of a gather or a scatter of the hidden states over the tensor ranks.
  double hidden_half() const { return ring_seconds(in_transit.hidden, s.tensor, group_link(p, s.tensor, 1)); }
  /// Seconds that the reductions among these calls take longer in rank order.
  double ordered(const TensorCalls& calls) const {
    return calls.reductions() * ordered_sum_seconds(p, in_transit.hidden, s.tensor);
  }
  double tensor_comm(bool forward) const {
    if (s.tensor == 1) return 0;
    // Collectives overlap pieces of products only with sequence parallelism, and if the link joins the tensor
    // ranks.
    const bool pieces = w.overlap_tensor && s.sequence && s.tensor <= p.machine.domain();
    const auto exposed = [](double exchanged, double work, double hidden) {
      return exchanged - hidden * std::min(exchanged, work);
    };
    // Collectives enclose attention, and also the dense block or the shared experts.
    const TensorCalls calls = layer_calls(s.sequence, routed && m.shared_ffn == 0 ? 1 : 2, forward);
    const double one = hidden_half(), gathered = calls.again * one,
                 all = (calls.halves() - calls.again) * one + ordered(calls);
    if (forward) return exposed(all, linears_forward(), pieces ? k.tensor_overlap : 0);
    if (pieces) return exposed(all + gathered, linears_backward(), k.tensor_overlap);
    // The reduction of the input's gradient overlaps the products for the weights' gradients.
    return exposed(all, kWeightGradients * linears_backward(), kPartOfOverlap * k.tensor_overlap) + gathered;
  }
  double context_comm(bool forward) const {
    if (s.context == 1) return 0;
    const Link link = group_link(p, s.context, s.tensor);
    const double bytes = in_transit.keys_values * (s.context - 1) / s.context;
    const double added = forward ? 0 : ordered_sum_seconds(p, in_transit.keys_values, s.context);
    const double sent =
        kContextRounds.of(forward) * (bytes / link.bandwidth + (s.context - 1) * link.latency) + added;
    const double hidden = k.context_overlap * std::min(sent, attention(forward));
    return sent - hidden;
  }

  double vocab() const { return static_cast<double>(m.padded_vocab(s.tensor)) / s.tensor; }
  /// Columns of the logits that a device works on.
  double logit_columns() const { return w.gathered_logits ? vocab() * s.tensor : vocab(); }
  double head() const {  // seconds of the head: forward, both gradients, and the softmax over the logits
    const double moved = w.fused_cross_entropy ? kFusedLossBytes
                         : w.torch_loss        ? kTorchLossBytes
                                               : kMegatronLossBytes;
    const double gather =
        w.gathered_logits ? ring_seconds(e * n * logit_columns(), s.tensor, group_link(p, s.tensor, 1)) : 0;
    return product(n, vocab(), m.hidden, peak) + product(n, m.hidden, vocab(), peak) +
           (frozen() ? 0 : product(vocab(), m.hidden, n, peak)) + stream(n * logit_columns() * moved) +
           gather + end_comm();
  }
  /// Seconds of both passes in which tensor ranks exchange hidden states around the embedding, or the head.
  double end_comm() const {
    const TensorCalls calls = end_calls(s.sequence);
    return s.tensor == 1 ? 0 : calls.halves() * hidden_half() + ordered(calls);
  }
  /// Seconds to add a microbatch's gradients to the buffer, which is read and written. Without
  /// fused_gradients the gradients are first written separately and read again.
  double accumulation(double parameters) const {
    const double both = kReadAndWritten * (p.half() ? w.gradient_bytes : kFp32);
    return parameters * (w.fused_gradients ? both : both + kReadAndWritten * e) / bandwidth;
  }

  double forward_work() const {
    return linears_forward() + attention(true) + elementwise(true) + experts.forward + adapters.forward;
  }
  double backward_work() const {
    return linears_backward() + attention(false) + elementwise(false) + experts.backward + adapters.backward;
  }
  /// Exposed seconds of the exchange of tokens: those that neither another microbatch's work nor the shared
  /// experts hide.
  double exchange(bool forward) const {
    const double beside = w.overlap_exchange ? forward ? forward_work() : backward_work()
                          : m.shared_overlap ? block(forward)
                                             : 0;
    return experts.exchange - k.exchange_overlap * std::min(experts.exchange, beside);
  }

  /// Additional seconds of a backward pass that recomputes the whole layer, including the host's time to save
  /// and restore the state around it.
  double full_again(const LayerCost& once, double parameters) const {
    const double kept = w.cuda_graphs ? 0 : k.checkpoint_launches;
    const double kernels = launches(true) + launches(false) + kept;
    const double sent = once.forward_sent() + once.backward_sent();
    return with_host(forward_work() + backward_work() + accumulation(parameters) + sent, kernels) -
           once.backward_seconds();
  }

  double op(std::string_view name, const Cost& cost) const {
    double rate = peak;
    if (name == Gemm::kName) rate = product_flops();
    if (name == Attention::kName) rate = flash_flops(channels());
    if (name == AttentionGrad::kName) rate = flash_flops(channels()) * k.flash_backward;
    return smooth_max(cost.flops / rate, cost.bytes / bandwidth) + gap();
  }

  /// The cost of a layer that has `parameters` parameters on a device.
  LayerCost layer(double parameters) const {
    LayerCost out;
    out.forward_exchange = exchange(true);
    out.backward_exchange = exchange(false);
    out.forward_comm = tensor_comm(true) + context_comm(true);
    out.backward_comm = tensor_comm(false) + context_comm(false);
    // The host starts kernels during an exchange too. So if a layer waits for the host, an exchange that
    // becomes exposed because products got faster adds nothing to the wait.
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
        with_host(kEverySecond * (linears_forward() + experts.forward) + elementwise(true), launches(true));
    keep(out);
    return out;
  }

  /// Seconds of one layer that predicts a further token, and of its head.
  double predictions(const LayerCost& layer) const {
    const double joined = 2.0 * m.hidden / s.tensor;  // the previous state and an embedding, side by side
    return layer.seconds() + layer_product(m.hidden, joined) + both(m.hidden, joined) + head();
  }

  LayerPrice price() const {
    LayerPrice out;
    out.parameters =
        count_parameters(m, {.tensor = s.tensor, .expert = s.expert, .expert_tensor = s.expert_tensor});
    out.trained = trained_parameters(p, out.parameters, s.tensor);
    out.weight_bytes = weight_bytes(p, out.parameters, s.tensor);
    static_cast<LayerCost&>(out) = layer(out.trained.block + out.trained.experts);
    if (m.plain_layers(m.layers) > 0) out.plain = Pricer(p, s, false).layer(out.trained.plain_block);
    out.head = head() + accumulation(out.trained.embedding);
    if (m.predicted > 0) out.head += m.predicted * predictions(out);
    const double looked_up = frozen() ? kFrozenEmbeddingPasses * e : kEmbeddingPasses * e + kEmbeddingBytes;
    out.embedding = stream(n * m.hidden * share * looked_up) + end_comm();
    out.message = in_transit.message;
    out.sent = out.message;
    if (w.scatters_messages && !s.sequence && s.tensor > 1) {
      out.sent = out.message / s.tensor;
      out.put_together = ring_seconds(out.message, s.tensor, group_link(p, s.tensor, 1));
    }
    keep_ends(out);
    return out;
  }

  /// Bytes that a layer keeps for its backward pass, counted tensor by tensor, since the table of Korthikanti
  /// et al. holds only for GELU with dropout.
  void keep(LayerCost& out) const {
    const double h = m.hidden;
    const double masks = has_dropout(m) ? kResiduals * kMask * h * share : 0;
    const double whole = w.keeps_gathered ? 1 : share;
    // Bytes of the norms' inputs and outputs. Norms after the branches keep those in place of what norms
    // before them would give; with both kinds, a layer keeps both.
    const double branches = (m.layer_norms() - kNorms) * e * h * share;
    const double rows = kNorms * e * h * (share + whole) + branches + masks;
    const double inner = w.fused_norm || w.compiled ? 0 : k.eager_kept * kNormCopies * h * share;
    const double core = keeps_scores() ? scores() / n * score_bytes() : kLogSumExp * m.heads / s.tensor;
    // PyTorch's rotation allocates rotated queries and keys in addition, while the projection stays in memory
    // because of the values.
    const bool turned = m.position == PositionEmbedding::kRope && !w.fused_rope && !w.compiled;
    const double ranks = m.latent_attention ? kAroundNorm * (m.query_rank + m.key_rank) + m.key_rotated : 0;
    const double attention_rows = e * (qkv() + attended() + (turned ? q() + kv() : 0) + ranks);
    // 8-bit products keep their inputs in 8 bits, which saves one byte per element of the results of both
    // norms and of the activation.
    const double saved = narrow() ? kNorms * h * share + ffn() : 0;
    const double inside = e * gates() * ffn(),
                 activated = e * ffn() *
                             (w.fused_activation || w.compiled || !m.swiglu ? kActivated : kEagerActivated);
    out.kept = n * (rows + inner + attention_rows + core + inside + activated - saved) + experts.kept +
               adapters.kept;
    out.kept_attention = out.kept - n * core;
    out.kept_norm_act = out.kept - n * (kNorms * e * h * share + inner + activated) - experts.kept_act;
    out.kept_products = n * (kNorms * e * h * share + e * attended() + kEverySecond * (e * qkv() + inside) +
                             kLogSumExp * m.heads / s.tensor) +
                        kEverySecond * experts.kept + adapters.kept;
    out.kept_full = n * e * h * share;
  }
  /// Bytes kept before and after the layers, and bytes needed only while a layer runs.
  void keep_ends(LayerPrice& out) const {
    const double h = m.hidden;
    out.kept_embedding = n * (kTokenId + (has_dropout(m) ? kMask * h * share : 0));
    out.kept_head = kAroundNorm * e * n * h * share;
    if (m.predicted > 0) out.kept_head += m.predicted * (out.kept + kPredictionKept * e * n * h * share);
    const double copies = w.fused_cross_entropy
                              ? kFusedLossKept
                              : k.logit_copies + (w.torch_loss && !w.compiled ? kTorchLossKept : 0);
    const double rows_at_once = w.head_rows > 0 ? std::min<double>(n, w.head_rows) : n;
    out.logits = rows_at_once * logit_columns() *
                 (p.half()          ? copies
                  : w.head_rows > 0 ? kRowsLossKept
                                    : kFp32LossKept);
    out.transient = (s.sequence ? kGathered * e * n * h : 0) +
                    (keeps_scores() ? kScoreTransients * e * scores() : 0) + experts.transient;
  }
  double score_bytes() const {  // bytes kept per element of the scores
    const double softmax = e, drop = m.attention_dropout > 0 ? kMask + e : 0;
    const double before = w.attention == AttentionKernel::kFusedSoftmax && w.keeps_softmax_input ? e : 0;
    return softmax + drop + before +
           (w.attention == AttentionKernel::kTorch ? kFp32 : 0);  // PyTorch's softmax is in fp32
  }
};

}  // namespace

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

double op_seconds(const PlanProblem& p, std::string_view op, const Cost& cost) {
  const LayerShape shape;
  return Pricer(p, shape, false).op(op, cost);
}

LayerPrice price_layer(const PlanProblem& p, const LayerShape& shape) {
  return Pricer(p, shape, p.model.has_experts()).price();
}

}  // namespace megalith
