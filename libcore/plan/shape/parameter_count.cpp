#include "libcore/plan/shape/parameter_count.h"

#include <algorithm>

namespace megalith {
namespace {

/// Parameters of a norm over `width` channels: one per channel, with LayerNorm two.
double norm_of(const ModelConfig& m, double width) {
  return (m.norm == Normalization::kLayerNorm ? 2.0 : 1.0) * width;
}

/// Parameters of latent attention's projections: those down to the ranks, which each tensor rank has whole;
/// those up to the rank's heads; and the norms of the compressed tensors.
double latent_inputs(const ModelShape& m, double tensor) {
  const double h = m.hidden, queries = m.query_width() / tensor;
  const double keys = static_cast<double>(m.heads) * (m.key_channels + m.value_channels) / tensor;
  double sum = h * (m.key_rank + m.key_rotated) + m.key_rank * keys + norm_of(m, m.key_rank);
  if (m.query_rank > 0)
    sum += h * m.query_rank + m.query_rank * queries + norm_of(m, m.query_rank);
  else
    sum += h * queries;
  return sum;
}

/// Parameters of the norms of queries and keys: each head's, which each tensor rank has whole, or those of
/// all heads together, which are divided as the heads are.
double head_norms(const ModelShape& m, int tensor) {
  if (!m.qk_layernorm) return 0;
  if (!m.qk_norm_all_heads) return 2 * norm_of(m, m.kv_channels);
  return norm_of(m, m.query_width() / tensor + local_key_width(m, tensor));
}

double attention(const ModelShape& m, int tensor) {
  const double h = m.hidden, out = m.output_width() / tensor;
  if (m.latent_attention) return latent_inputs(m, tensor) + out * h + (m.linear_bias ? h : 0);
  const double qkv = m.query_width() / tensor + 2 * local_key_width(m, tensor);
  return h * qkv + out * h + (m.has_qkv_bias() ? qkv : 0) + (m.linear_bias ? h : 0) + head_norms(m, tensor);
}

/// One rank's parameters of a feed-forward block or expert of `width` that `ranks` ranks share.
double feed_forward(const ModelConfig& m, double width, double ranks) {
  if (width == 0) return 0;
  const double h = m.hidden, part = width / ranks;
  return (gates(m) + 1) * h * part + (m.linear_bias ? gates(m) * part + h : 0);
}

/// Parameters that every token uses in the feed-forward part of a layer with experts: the router and the
/// shared experts.
double around_experts(const ModelShape& m, int tensor) {
  const double router = static_cast<double>(m.expert_count()) * (m.hidden + (m.linear_bias ? 1 : 0));
  return router + feed_forward(m, m.shared_ffn, tensor) + (m.shared_gate ? m.hidden : 0);
}

}  // namespace

double norm_width(const ModelConfig& m) {
  return norm_of(m, m.hidden);
}
double gates(const ModelConfig& m) {
  return m.swiglu ? 2 : 1;
}
double local_key_width(const ModelConfig& m, int tensor) {
  const double keys = static_cast<double>(m.kv_heads()) * m.kv_channels;
  return std::max(keys / tensor, static_cast<double>(m.kv_channels));
}

ParameterCount& ParameterCount::operator*=(double factor) {
  for (double* const number : {&block, &experts, &plain_block, &embedding, &head, &head_experts, &head_copy})
    *number *= factor;
  return *this;
}

ParameterCount count_parameters(const ModelShape& m, const ParameterShare& ranks) {
  ParameterCount count;
  const double h = m.hidden, around = attention(m, ranks.tensor) + m.layer_norms() * norm_width(m);
  const double dense = around + feed_forward(m, m.ffn_hidden, ranks.tensor);
  count.block = m.has_experts() ? around + around_experts(m, ranks.tensor) : dense;
  count.plain_block = m.has_experts() ? dense : 0;
  count.experts = feed_forward(m, m.has_experts() ? m.expert_ffn : 0, ranks.expert_tensor) *
                  m.expert_count() / ranks.expert;
  const double table = static_cast<double>(m.padded_vocab(ranks.tensor)) * h / ranks.tensor;
  count.embedding = table;
  if (m.position == PositionEmbedding::kLearned) count.embedding += static_cast<double>(m.max_positions) * h;
  count.head = norm_width(m) + (m.untied_head ? table : 0);
  // The layer of a further predicted token joins the previous token's state and an embedding, each after a
  // norm.
  count.head += m.predicted * (count.block + 2 * h * h / ranks.tensor + 3 * norm_width(m));
  count.head_experts = m.predicted * count.experts;
  count.head_copy = m.untied_head ? 0 : table;
  return count;
}

bool joins_projections(const ModelConfig& m) {
  return m.position == PositionEmbedding::kLearned;
}

std::array<AdaptedLinear, 5> adapted_linears(const ModelConfig& m, int tensor) {
  const double h = m.hidden, q = static_cast<double>(m.heads) * m.kv_channels / tensor,
               kv = local_key_width(m, tensor), f = static_cast<double>(m.ffn_hidden) / tensor;
  const bool joined = joins_projections(m);
  return {
      {{joined ? q + 2 * kv : q, h, 1}, {kv, h, joined ? 0.0 : 2.0}, {h, q, 1}, {f, h, gates(m)}, {h, f, 1}}};
}

double adapter_parameters(const ModelConfig& m, int tensor, int rank) {
  double sum = 0;
  for (const AdaptedLinear& one : adapted_linears(m, tensor)) sum += one.times * (one.out + one.in);
  return rank * sum;
}

LinearCount count_linears(const ModelConfig& m, int tensor) {
  LinearCount count;
  for (const AdaptedLinear& one : adapted_linears(m, tensor)) {
    count.elements += one.times * one.out * one.in;
    count.rows += one.times * one.out;
  }
  return count;
}

double total_parameters(const ModelShape& m) {
  ModelShape unpadded = m;
  unpadded.vocab_divisor = 1;
  const ParameterCount count = count_parameters(unpadded, 1);
  const double plain = m.plain_layers(m.layers);
  return (count.block + count.experts) * (m.layers - plain) + count.plain_block * plain + count.embedding +
         count.head + count.head_experts;
}

double active_parameters(const ModelShape& m) {
  if (!m.has_experts()) return total_parameters(m);
  const ParameterCount count = count_parameters(m, 1);
  const double layers = m.layers - m.plain_layers(m.layers);
  const double idle = 1 - static_cast<double>(m.router_topk) / m.expert_count();
  return total_parameters(m) - idle * (count.experts * layers + count.head_experts);
}

double matrix_parameters(const ModelShape& m, bool experts) {
  const double h = m.hidden, keys = static_cast<double>(m.kv_heads()) * m.kv_channels;
  double sum = h * (m.query_width() + m.output_width() + 2 * keys);
  if (m.latent_attention) {
    const double up = static_cast<double>(m.heads) * (m.key_channels + m.value_channels);
    const double queries = m.query_rank > 0 ? m.query_rank * (h + m.query_width()) : h * m.query_width();
    sum = queries + h * (m.key_rank + m.key_rotated) + m.key_rank * up + h * m.output_width();
  }
  const double width =
      experts ? m.shared_ffn + static_cast<double>(m.router_topk) * m.expert_ffn : m.ffn_hidden;
  return sum + (gates(m) + 1) * h * width + (experts ? h * m.expert_count() : 0);
}

}  // namespace megalith
