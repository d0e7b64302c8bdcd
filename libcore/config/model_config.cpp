#include "libcore/config/model_config.h"

#include <cmath>

#include "libcore/base/text.h"
#include "libcore/config/activations.h"
#include "libcore/config/vocab_padding.h"

namespace megalith {

void ModelConfig::finish() {
  if (use_rotary) position = PositionEmbedding::kRope;
  if (ffn_hidden == 0) ffn_hidden = swiglu ? static_cast<int>(4.0 * hidden * 2 / 3 / 64) * 64 : 4 * hidden;
  if (kv_channels == 0 && heads > 0) kv_channels = hidden / heads;
  if (!group_query) query_groups = heads;
  if (max_positions == 0) max_positions = seq_length;
  if (!qkv_bias) qkv_bias = linear_bias;
}

ActivationFunction ModelConfig::activation() const {
  if (hidden_act)
    if (const auto function = hf_activation(*hidden_act)) return *function;
  if (swiglu) return ActivationFunction::kSilu;
  if (squared_relu) return ActivationFunction::kSquaredRelu;
  return openai_gelu || bias_gelu_fusion ? ActivationFunction::kGeluTanh : ActivationFunction::kGelu;
}

double ModelConfig::attention_scale() const {
  return attention_multiplier > 0 ? attention_multiplier : 1 / std::sqrt(static_cast<double>(kv_channels));
}

std::vector<std::string> ModelConfig::multipliers() const {
  std::vector<std::string> list;
  const auto add = [&](const char* option, double value, double neutral) {
    if (value != neutral) list.push_back(concat("--", option, ' ', format_double(value)));
  };
  add("embedding-multiplier", embedding_multiplier, 1);
  add("residual-multiplier", residual_multiplier, 1);
  add("attention-multiplier", attention_multiplier, 0);
  add("logits-scaling", logits_scaling, 1);
  return list;
}

int64_t ModelConfig::padded_vocab(int tensor_parallel) const {
  return padded_vocab_size(vocab_size, int64_t{vocab_divisor} * tensor_parallel);
}

namespace {
void refuse_unsupported(const ModelConfig& m, Problems& problems) {
  if (m.layernorm_1p)
    problems.add(Opt{"apply-layernorm-1p"}, " is not supported; train with plain ", Opt{"normalization"},
                 " LayerNorm");
  if (m.rotary_interleaved)
    problems.add(Opt{"rotary-interleaved"}, " is not supported; leave it out: halves are rotated");
  if (m.experts)
    problems.add(Opt{"num-experts"}, ' ', *m.experts,
                 " is not supported; leave it out: the feed-forward block is dense (megalith-autoplan plans "
                 "mixtures of experts for Megatron-LM)");
}

void require(int value, const char* option, Problems& problems) {
  if (value == 0) problems.missing({option});
}

void check_widths(const ModelConfig& m, Problems& problems) {
  if (m.heads > 0 && m.hidden > 0 && m.kv_channels == m.hidden / m.heads && m.hidden % m.heads != 0)
    problems.add(Opt{"hidden-size"}, ' ', m.hidden, " is not a multiple of ", Opt{"num-attention-heads"}, ' ',
                 m.heads, nearest_multiples(m.hidden, m.heads), "; or give ", Opt{"kv-channels"});
  if (m.group_query && m.heads % m.query_groups != 0)
    problems.add(Opt{"num-attention-heads"}, ' ', m.heads, " is not a multiple of ", Opt{"num-query-groups"},
                 ' ', m.query_groups, nearest_multiples(m.heads, m.query_groups));
  if (m.swiglu && m.hidden > 0 && m.ffn_hidden == 0)
    problems.add(Opt{"swiglu"}, " with ", Opt{"hidden-size"}, ' ', m.hidden,
                 " gives a feed-forward width of 0: 8/3 of it, rounded down to a multiple of 64; give ",
                 Opt{"ffn-hidden-size"});
}

void check_positions(const ModelConfig& m, Problems& problems) {
  if (m.max_positions < m.seq_length)
    problems.add(Opt{"max-position-embeddings"}, ' ', m.max_positions, " is less than ", Opt{"seq-length"},
                 ' ', m.seq_length, "; raise the first or lower the second");
  if (m.rope_scaling && m.rope_high_freq <= m.rope_low_freq)
    problems.add(Opt{"rope-scaling-high-freq-factor"}, ' ', m.rope_high_freq, " is not above ",
                 Opt{"rope-scaling-low-freq-factor"}, ' ', m.rope_low_freq);
  if (m.no_rope_freq > 0 && m.position != PositionEmbedding::kRope)
    problems.add(Opt{"no-rope-freq"}, ' ', m.no_rope_freq, " has no effect without ",
                 Opt{"position-embedding-type"}, " rope; leave it out");
  if (m.layers > 0 && m.no_rope_freq > m.layers)
    problems.add(Opt{"no-rope-freq"}, ' ', m.no_rope_freq, " leaves every layer rotated: there are ",
                 m.layers, "; leave it out, or give ", m.layers, " at most");
  if (m.position == PositionEmbedding::kRope && m.rotary_channels() % 2 != 0)
    problems.add(Opt{"kv-channels"}, ' ', m.kv_channels, " times ", Opt{"rotary-percent"}, ' ',
                 m.rotary_percent, " gives ", m.rotary_channels(),
                 " rotated channels; wanted an even number");
  if (m.position == PositionEmbedding::kRope && m.kv_channels > 0 && m.rotary_channels() == 0)
    problems.add(Opt{"rotary-percent"}, ' ', m.rotary_percent, " rotates none of the ", m.kv_channels,
                 " channels of a head; raise it, or give ", Opt{"position-embedding-type"}, " none");
}

// A list of numbers with commas; empty if it is something else.
std::vector<double> factor_list(const std::string& text) {
  std::vector<double> factors;
  for (const std::string& part : split(text, ',')) {
    const std::optional<double> factor = parse_double(part);
    if (!factor || !std::isfinite(*factor) || *factor <= 0) return {};
    factors.push_back(*factor);
  }
  return factors;
}

void check_long_factors(const ModelConfig& m, Problems& problems) {
  const auto pairs = static_cast<size_t>(m.rotary_channels() / 2);
  for (const auto& [option, text] : {std::pair{"rope-short-factors", &m.rope_short_factors},
                                     std::pair{"rope-long-factors", &m.rope_long_factors}}) {
    const size_t given = factor_list(*text).size();
    if (m.rope_type != RopeType::kLongrope && !text->empty())
      problems.add(Opt{option}, " has no effect without ", Opt{"rope-scaling-type"},
                   " longrope; leave it out");
    else if (m.rope_type == RopeType::kLongrope && given == 0)
      problems.add(Opt{option}, ' ', quote(*text), ": wanted ", pairs,
                   " positive numbers separated by commas");
    else if (given > 0 && given != pairs)
      problems.add(Opt{option}, " has ", given, " numbers, wanted one for each of the ", pairs,
                   " pairs of rotated channels");
  }
}

// Options that other types of scaling do not read.
void check_unread_scaling(const ModelConfig& m, Problems& problems) {
  const ModelConfig usual;
  const bool yarn = m.rope_type == RopeType::kYarn;
  const auto unread = [&](bool given, const char* option, const char* types) {
    if (given)
      problems.add(Opt{option}, " has no effect without ", Opt{"rope-scaling-type"}, ' ', types,
                   "; leave it out");
  };
  unread(m.rope_attention_factor > 0 && !yarn && m.rope_type != RopeType::kLongrope, "rope-attention-factor",
         "yarn or longrope");
  unread(m.rope_beta_fast != usual.rope_beta_fast && !yarn, "rope-beta-fast", "yarn");
  unread(m.rope_beta_slow != usual.rope_beta_slow && !yarn, "rope-beta-slow", "yarn");
  unread(!m.rope_truncate && !yarn, "no-rope-truncate", "yarn");
}

void check_rope_type(const ModelConfig& m, Problems& problems) {
  check_long_factors(m, problems);
  check_unread_scaling(m, problems);
  if (m.rope_type == RopeType::kDefault) return;
  const char* const type = enum_name(m.rope_type);
  if (m.position != PositionEmbedding::kRope)
    problems.add(Opt{"rope-scaling-type"}, ' ', type, " has no effect without ",
                 Opt{"position-embedding-type"}, " rope; leave it out");
  if (m.rope_scaling || m.rotary_interpolation != 1)
    problems.add(Opt{"rope-scaling-type"}, ' ', type, " and ",
                 Opt{m.rope_scaling ? "use-rope-scaling" : "rotary-seq-len-interpolation-factor"},
                 " stretch the angles twice; give one of them");
  if (m.rope_type == RopeType::kYarn && m.rope_beta_fast < m.rope_beta_slow)
    problems.add(Opt{"rope-beta-fast"}, ' ', m.rope_beta_fast, " is less than ", Opt{"rope-beta-slow"}, ' ',
                 m.rope_beta_slow);
  if (m.rope_type == RopeType::kDynamic && m.rotary_channels() == 2)
    problems.add(Opt{"rope-scaling-type"}, " dynamic needs more than one pair of rotated channels");
}

// Whether some layers have the window, and others have not, if options say so.
void check_mixed_windows(const ModelConfig& m, Problems& problems) {
  if (m.layers == 0) return;
  if (m.window_skip_freq > m.layers)
    problems.add(Opt{"window-attn-skip-freq"}, ' ', m.window_skip_freq,
                 " leaves every layer the window: there are ", m.layers, "; leave it out, or give ", m.layers,
                 " at most");
  int layer = 0;
  while (layer < m.layers && m.window_of(layer) == 0) ++layer;
  if (layer < m.layers) return;
  const bool skipped = m.window_skip_freq > 0;
  problems.add(Opt{"sliding-window"}, ' ', m.sliding_window,
               " has no effect: ", Opt{skipped ? "window-attn-skip-freq" : "max-window-layers"}, ' ',
               skipped ? m.window_skip_freq : m.full_layers, " leaves none of the ", m.layers,
               " layers the window");
}

void check_windows(const ModelConfig& m, Problems& problems) {
  if (m.sliding_window > 0) return check_mixed_windows(m, problems);
  if (m.window_skip_freq > 0)
    problems.add(Opt{"window-attn-skip-freq"}, ' ', m.window_skip_freq, " has no effect without ",
                 Opt{"sliding-window"}, "; leave it out");
  if (m.full_layers > 0)
    problems.add(Opt{"max-window-layers"}, ' ', m.full_layers, " has no effect without ",
                 Opt{"sliding-window"}, "; leave it out");
}

void check_head_norms(const ModelConfig& m, Problems& problems) {
  if (!m.qk_norm_all_heads) return;
  if (!m.qk_layernorm)
    problems.add(Opt{"qk-norm-all-heads"}, " has no effect without ", Opt{"qk-layernorm"}, "; give both");
  if (m.norm != Normalization::kRmsNorm)
    problems.add(Opt{"qk-norm-all-heads"}, " is there for ", Opt{"normalization"}, " RMSNorm only, not for ",
                 enum_name(m.norm));
}

void check_parallel_branches(const ModelConfig& m, Problems& problems) {
  if (m.parallel_norms == 1 && !m.parallel_residual)
    problems.add(Opt{"parallel-norms"}, " 1 has no effect without ", Opt{"parallel-residual"},
                 "; leave it out");
  if (m.parallel_residual && m.norms_after())
    problems.add(Opt{"parallel-residual"}, " normalizes what the branches read; give no ",
                 Opt{"norm-placement"}, ' ', enum_name(m.norm_placement));
}

// Several options name the activation; two that differ are refused.
void check_activation(const ModelConfig& m, Problems& problems) {
  if (m.hidden_act && !hf_activation(*m.hidden_act))
    problems.add(Opt{"hidden-act"}, " is ", quote(*m.hidden_act), ", wanted one of ", hf_activation_names());
  std::vector<std::pair<const char*, ActivationFunction>> said;
  if (m.swiglu) said.emplace_back("swiglu", ActivationFunction::kSilu);
  if (m.openai_gelu) said.emplace_back("openai-gelu", ActivationFunction::kGeluTanh);
  if (m.squared_relu) said.emplace_back("squared-relu", ActivationFunction::kSquaredRelu);
  if (m.hidden_act) said.emplace_back("hidden-act", m.activation());
  for (size_t i = 1; i < said.size(); ++i)
    if (said[i].second != said[0].second)
      problems.add(Opt{said[0].first}, " and ", Opt{said[i].first},
                   " contradict each other; give one of them");
}

// Refuses a dropout of 1: the elements that are kept are divided by 1 - p.
void require_below_one(double probability, const char* option, Problems& problems) {
  if (probability >= 1)
    problems.add(Opt{option}, " is ", probability, ", wanted less than 1: nothing would be left");
}
}  // namespace

void ModelConfig::validate(Problems& problems) const {
  require(layers, "num-layers", problems);
  require(hidden, "hidden-size", problems);
  require(heads, "num-attention-heads", problems);
  require(seq_length, "seq-length", problems);
  check_widths(*this, problems);
  check_positions(*this, problems);
  check_rope_type(*this, problems);
  check_windows(*this, problems);
  check_head_norms(*this, problems);
  require_below_one(attention_dropout, "attention-dropout", problems);
  require_below_one(hidden_dropout, "hidden-dropout", problems);
  check_activation(*this, problems);
  check_parallel_branches(*this, problems);
  refuse_unsupported(*this, problems);
}

std::vector<double> rope_factors(const std::string& list) {
  return factor_list(list);
}

std::string nearest_multiples(int64_t value, int64_t divisor) {
  const int64_t below = value / divisor * divisor;
  return concat("; nearest that work: ", below > 0 ? concat(below, ", ") : std::string(), below + divisor);
}

template std::vector<Field> fields_of<ModelConfig>(ModelConfig&);

}  // namespace megalith
