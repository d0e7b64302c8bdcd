#include "libcore/plan/shape/model_options.h"

#include <cmath>
#include <sstream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// Writes a number unless it is the usual one. Whole numbers are written as integers: for some options
/// Megatron does not accept 1e+06.
void number(std::ostream& out, const char* option, double value, double usual) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value == usual) return;
  const bool whole = std::floor(value) == value && std::abs(value) < kExact;
  out << " --" << option << ' '
      << (whole ? std::to_string(static_cast<int64_t>(value)) : format_double(value));
}

void router_options(std::ostream& out, const ModelShape& m) {
  const std::string scores = m.score_function.value_or(m.expert_bias ? "sigmoid" : "softmax");
  if (m.expert_bias) out << " --moe-router-enable-expert-bias";
  if (scores != "softmax")
    out << " --moe-router-score-function " << scores;
  else if (m.router_topk == 1)
    out << " --moe-router-pre-softmax";  // otherwise a softmax over one score, which has no gradient
  if (!m.balance.empty()) out << " --moe-router-load-balancing-type " << join(m.balance, " ");
  if (!m.loss_coeffs.empty()) out << " --moe-aux-loss-coeff " << join(m.loss_coeffs, " ");
  if (m.router_groups) out << " --moe-router-num-groups " << *m.router_groups;
  if (m.group_topk) out << " --moe-router-group-topk " << *m.group_topk;
  if (m.forced_balance) out << " --moe-router-force-load-balancing";
}

void expert_options(std::ostream& out, const ModelShape& m) {
  out << " --num-experts " << m.expert_count() << " --moe-router-topk " << m.router_topk
      << " --moe-ffn-hidden-size " << m.expert_ffn << " --moe-token-dispatcher-type "
      << enum_name(m.dispatcher) << " --moe-grouped-gemm";
  if (m.shared_ffn > 0) out << " --moe-shared-expert-intermediate-size " << m.shared_ffn;
  if (m.shared_gate) out << " --moe-shared-expert-gate";
  if (m.layer_freq != "1") out << " --moe-layer-freq \"" << m.layer_freq << '"';
  if (m.capacity) out << " --moe-expert-capacity-factor " << *m.capacity;
  if (m.dispatcher == Dispatcher::kFlex) out << " --moe-enable-deepep";
  if (m.shared_overlap) out << " --moe-shared-expert-overlap";
  router_options(out, m);
}

void latent_options(std::ostream& out, const ModelShape& m) {
  out << " --multi-latent-attention --kv-lora-rank " << m.key_rank << " --qk-head-dim " << m.key_channels
      << " --qk-pos-emb-head-dim " << m.key_rotated << " --v-head-dim " << m.value_channels;
  if (m.query_rank > 0) out << " --q-lora-rank " << m.query_rank;
}

void bias_options(std::ostream& out, const ModelShape& m, bool ours) {
  if (!m.linear_bias) out << " --disable-bias-linear";
  if (m.has_qkv_bias() && !m.linear_bias) out << " --add-qkv-bias";
  if (ours && !m.has_qkv_bias() && m.linear_bias) out << " --no-add-qkv-bias";
  if (!m.bias_gelu_fusion) out << " --no-bias-gelu-fusion";
  if (m.openai_gelu) out << " --openai-gelu";
  if (m.squared_relu) out << " --squared-relu";
  if (ours && m.hidden_act) out << " --hidden-act " << *m.hidden_act;
}

/// The layers without rotation: every N-th. Megatron wants a number that divides the layers, or a list in
/// which 1 marks each of them.
void no_rope_option(std::ostream& out, const ModelShape& m, bool ours) {
  const int every = m.no_rope_freq;
  if (every == 0) return;
  out << " --no-rope-freq ";
  if (ours || m.layers % every == 0) {
    out << every;
    return;
  }
  const int whole = m.layers / every, rest = m.layers % every;
  if (whole > 0) out << "\"([0]*" << every - 1 << "+[1])*" << whole << "+[0]*" << rest << '"';
  if (whole == 0) out << "\"[0]*" << rest << '"';
}

/// Writes the options of rotary scalings that only our trainer has.
void long_rope_options(std::ostream& out, const ModelShape& m) {
  const ModelShape usual;
  if (m.rope_type == RopeType::kDefault) return;
  out << " --rope-scaling-type " << enum_name(m.rope_type);
  number(out, "rope-attention-factor", m.rope_attention_factor, usual.rope_attention_factor);
  number(out, "rope-beta-fast", m.rope_beta_fast, usual.rope_beta_fast);
  number(out, "rope-beta-slow", m.rope_beta_slow, usual.rope_beta_slow);
  if (!m.rope_truncate) out << " --no-rope-truncate";
  if (m.rope_type == RopeType::kLongrope)
    out << " --rope-short-factors " << m.rope_short_factors << " --rope-long-factors " << m.rope_long_factors;
}

void position_options(std::ostream& out, const ModelShape& m, bool ours) {
  const ModelShape usual;
  if (m.position != usual.position) out << " --position-embedding-type " << enum_name(m.position);
  number(out, "rotary-base", m.rotary_base, usual.rotary_base);
  number(out, "rotary-percent", m.rotary_percent, usual.rotary_percent);
  number(out, "rotary-seq-len-interpolation-factor", m.rotary_interpolation, usual.rotary_interpolation);
  no_rope_option(out, m, ours);
  if (m.rope_scaling) out << " --use-rope-scaling";
  if (m.rope_type == RopeType::kDefault || ours)
    number(out, "rope-scaling-factor", m.rope_factor, usual.rope_factor);
  if (!ours)
    return;  // LLaMA's numbers are built into Megatron, and a window that holds a whole sample changes
             // nothing
  number(out, "rope-scaling-low-freq-factor", m.rope_low_freq, usual.rope_low_freq);
  number(out, "rope-scaling-high-freq-factor", m.rope_high_freq, usual.rope_high_freq);
  number(out, "rope-scaling-original-positions", m.rope_original_positions, usual.rope_original_positions);
  number(out, "sliding-window", m.sliding_window, usual.sliding_window);
  long_rope_options(out, m);
  number(out, "window-attn-skip-freq", m.window_skip_freq, usual.window_skip_freq);
  number(out, "max-window-layers", m.full_layers, usual.full_layers);
}

}  // namespace

std::string model_options(const ModelShape& m, bool ours) {
  std::ostringstream out;
  out << "--num-layers " << m.layers << " --hidden-size " << m.hidden << " --num-attention-heads " << m.heads
      << " --ffn-hidden-size " << m.ffn_hidden << " --seq-length " << m.seq_length
      << " --max-position-embeddings " << m.max_positions;
  if (m.group_query) out << " --group-query-attention --num-query-groups " << m.query_groups;
  if (m.latent_attention)
    latent_options(out, m);
  else if (m.kv_channels * m.heads != m.hidden)
    out << " --kv-channels " << m.kv_channels;
  if (m.qk_layernorm) out << " --qk-layernorm";
  if (ours && m.qk_norm_all_heads) out << " --qk-norm-all-heads";
  if (ours && m.norm_placement != NormPlacement::kBefore)
    out << " --norm-placement " << enum_name(m.norm_placement);
  for (const std::string& multiplier : m.multipliers())
    if (ours) out << ' ' << multiplier;
  if (m.swiglu) out << " --swiglu";
  if (m.norm == Normalization::kRmsNorm) out << " --normalization RMSNorm";
  if (m.untied_head) out << " --untie-embeddings-and-output-weights";
  bias_options(out, m, ours);
  position_options(out, m, ours);
  if (ours && m.parallel_residual) out << " --parallel-residual";
  if (ours) number(out, "parallel-norms", m.parallel_norms, 2);
  if (ours && m.hf_model_type) out << " --hf-model-type " << *m.hf_model_type;
  const ModelShape usual;
  number(out, "norm-epsilon", m.norm_epsilon, usual.norm_epsilon);
  number(out, "attention-dropout", m.attention_dropout, usual.attention_dropout);
  number(out, "hidden-dropout", m.hidden_dropout, usual.hidden_dropout);
  number(out, "init-method-std", m.init_std, usual.init_std);
  number(out, "make-vocab-size-divisible-by", m.vocab_divisor, usual.vocab_divisor);
  number(out, "vocab-size", static_cast<double>(m.vocab_size), 0);
  if (m.has_experts()) expert_options(out, m);
  if (m.predicted > 0) out << " --mtp-num-layers " << m.predicted;
  return out.str();
}

}  // namespace megalith
