#include "libcore/plan/log/logged_shape.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// Takes the options of experts, which are read as from a command line.
void take_experts(const LogArguments& in, ModelShape& m, Problems& problems) {
  if (const int experts = in.number("num_experts", m.expert_count()); experts > 0) m.experts = experts;
  if (!m.has_experts()) return;  // logs of dense models list the other arguments too
  for (const Field& field : fields_of(m)) {
    const std::string name = json_key(field.name);
    if (!name.starts_with("moe_") || !in.has(name)) continue;
    // A negative factor means no limit.
    if (name == "moe_expert_capacity_factor" && in.word(name).starts_with('-')) continue;
    const bool pattern = name == "moe_layer_freq";  // its value has brackets of its own
    set_field(field, pattern ? std::vector{in.word(name)} : in.words(name), {in.path(), name}, problems);
  }
}

void take_attention(const LogArguments& in, ModelShape& m) {
  m.kv_channels = in.number("kv_channels", m.hidden / std::max(m.heads, 1));
  m.group_query = in.flag("group_query_attention", m.group_query);
  m.query_groups = m.group_query ? in.number("num_query_groups", m.query_groups) : m.heads;
  m.latent_attention = in.flag("multi_latent_attention", m.latent_attention);
  if (!m.latent_attention) return;
  m.kv_channels = 0;  // derived from v_head_dim
  m.query_rank = in.number("q_lora_rank", m.query_rank);
  m.key_rank = in.number("kv_lora_rank", m.key_rank);
  m.key_channels = in.number("qk_head_dim", m.key_channels);
  m.key_rotated = in.number("qk_pos_emb_head_dim", m.key_rotated);
  m.value_channels = in.number("v_head_dim", m.value_channels);
}

}  // namespace

ModelShape logged_shape(const LogArguments& in, ModelShape base) {
  base.layers = in.number("num_layers", base.layers);
  base.hidden = in.number("hidden_size", base.hidden);
  base.heads = in.number("num_attention_heads", base.heads);
  base.ffn_hidden = in.number("ffn_hidden_size", base.ffn_hidden);
  base.seq_length = in.number("seq_length", base.seq_length);
  base.max_positions = in.number("max_position_embeddings", base.max_positions);
  base.vocab_size = in.number("padded_vocab_size", static_cast<int>(base.vocab_size));
  base.swiglu = in.flag("swiglu", base.swiglu);
  base.untied_head = in.flag("untie_embeddings_and_output_weights", base.untied_head);
  base.linear_bias = in.flag("add_bias_linear", base.linear_bias);
  if (in.has("add_bias_linear") || in.has("add_qkv_bias"))
    base.qkv_bias = base.linear_bias || in.flag("add_qkv_bias", false);
  base.qk_layernorm = in.flag("qk_layernorm", base.qk_layernorm);
  base.norm = in.choice("normalization", base.norm);
  base.position = in.choice("position_embedding_type", base.position);
  base.attention_dropout = in.share("attention_dropout", base.attention_dropout);
  base.hidden_dropout = in.share("hidden_dropout", base.hidden_dropout);
  base.predicted = in.number("mtp_num_layers", base.predicted);
  take_attention(in, base);
  Problems unread, problems;
  take_experts(in, base, unread);
  unread.throw_if_any(ErrorKind::kData);
  base.finish();
  base.validate(problems);
  if (!problems.empty()) fail(ErrorKind::kData, in.path(), ": ", problems.text("; "));
  return base;
}

}  // namespace megalith
