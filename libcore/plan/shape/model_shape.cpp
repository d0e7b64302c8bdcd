#include "libcore/plan/shape/model_shape.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/families/family.h"

namespace megalith {
namespace {

// The load of the fullest of 64 experts.
constexpr double kWithLoss = 1.72, kWithBias = 1.04;
constexpr int kMeasuredExperts = 64;
constexpr size_t kMostLayers = ModelShape::kMostLayers;  // most layers of a pattern

/// sum := product ("+" product)*; product := (list | "(" sum ")") ("*" number)?; list := "[" 0|1 ("," 0|1)*
/// "]".
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) : rest_(text) {}

  /// The pattern; empty if the text does not have this form.
  std::vector<int> read() {
    std::vector<int> out = sum();
    return good_ && rest_.empty() ? out : std::vector<int>{};
  }

 private:
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  int number() {
    const size_t end = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    const auto value = parse_int(rest_.substr(0, end));
    rest_.remove_prefix(end);
    good_ = good_ && value && *value >= 0 && static_cast<size_t>(*value) <= kMostLayers;
    return good_ ? static_cast<int>(*value) : 0;
  }
  std::vector<int> list() {
    std::vector<int> out;
    do {
      out.push_back(number());
    } while (good_ && take(','));
    good_ = good_ && take(']') && *std::max_element(out.begin(), out.end()) <= 1;
    return out;
  }
  std::vector<int> product() {
    std::vector<int> one;
    if (take('[')) {
      one = list();
    } else {
      good_ = good_ && depth_ < 8 && take('(');
      ++depth_;
      if (good_) one = sum();
      --depth_;
      good_ = good_ && take(')');
    }
    const int times = good_ && take('*') ? number() : 1;
    good_ = good_ && one.size() * static_cast<size_t>(times) <= kMostLayers;
    std::vector<int> out;
    for (int i = 0; good_ && i < times; ++i) out.insert(out.end(), one.begin(), one.end());
    return out;
  }
  std::vector<int> sum() {
    std::vector<int> out = product();
    while (good_ && take('+')) {
      const std::vector<int> more = product();
      out.insert(out.end(), more.begin(), more.end());
      good_ = good_ && out.size() <= kMostLayers;
    }
    return out;
  }

  std::string_view rest_;
  bool good_ = true;
  int depth_ = 0;
};

void check_groups(const ModelShape& m, Problems& problems) {
  const int experts = m.expert_count(), groups = m.router_groups.value_or(1),
            chosen = m.group_topk.value_or(1);
  if (m.group_topk && !m.router_groups)
    problems.add(Opt{"moe-router-group-topk"}, ' ', chosen, " needs ", Opt{"moe-router-num-groups"});
  else if (experts % groups != 0)
    problems.add(Opt{"num-experts"}, ' ', experts, " is not a multiple of ", Opt{"moe-router-num-groups"},
                 ' ', groups);
  else if (chosen > groups)
    problems.add(Opt{"moe-router-group-topk"}, ' ', chosen, " is more than ", Opt{"moe-router-num-groups"},
                 ' ', groups);
  else if (m.group_topk && m.router_topk > chosen * (experts / groups))
    problems.add(Opt{"moe-router-topk"}, ' ', m.router_topk, " is more than the ",
                 chosen * (experts / groups), " experts of ", Opt{"moe-router-group-topk"}, ' ', chosen);
}

void check_balance(const ModelShape& m, Problems& problems) {
  for (const std::string& word : m.loss_coeffs)
    if (!parse_double(word)) problems.add(Opt{"moe-aux-loss-coeff"}, ' ', quote(word), " is not a number");
  const size_t types = std::max<size_t>(m.balance.size(), 1);
  if (!m.loss_coeffs.empty() && m.loss_coeffs.size() != types)
    problems.add(Opt{"moe-aux-loss-coeff"}, " has ", m.loss_coeffs.size(), " numbers for ", types, " of ",
                 Opt{"moe-router-load-balancing-type"});
  if (m.has_balance_loss() || m.expert_bias || m.forced_balance || m.capacity) return;
  const std::string held = m.balance.empty() ? "aux_loss" : join(m.balance, " ");
  problems.add(
      Opt{"moe-router-load-balancing-type"}, ' ', held,
      m.loss_coeffs.empty() ? Phrase()
                            : Phrase(" with ", Opt{"moe-aux-loss-coeff"}, ' ', join(m.loss_coeffs, " ")),
      ": how unevenly tokens would then spread is not known; give ", Opt{"moe-router-enable-expert-bias"},
      ", ", Opt{"moe-expert-capacity-factor"}, " or ", Opt{"moe-router-force-load-balancing"});
}

void check_experts(const ModelShape& m, Problems& problems) {
  const int experts = m.expert_count();
  if (m.router_topk > experts)
    problems.add(Opt{"moe-router-topk"}, ' ', m.router_topk, " is more than ", Opt{"num-experts"}, ' ',
                 experts);
  if (m.shared_ffn == 0 && m.shared_gate)
    problems.add(Opt{"moe-shared-expert-gate"}, " needs ", Opt{"moe-shared-expert-intermediate-size"});
  if (m.shared_ffn == 0 && m.shared_overlap)
    problems.add(Opt{"moe-shared-expert-overlap"}, " needs ", Opt{"moe-shared-expert-intermediate-size"});
  if (m.deepep && m.dispatcher != Dispatcher::kFlex)
    problems.add(Opt{"moe-enable-deepep"}, " needs ", Opt{"moe-token-dispatcher-type"}, " flex");
  check_groups(m, problems);
  check_balance(m, problems);
  if (parse_layer_pattern(m.layer_freq).empty())
    problems.add(Opt{"moe-layer-freq"}, ' ', quote(m.layer_freq),
                 " is neither a number from 1 nor a list of 0 and 1 such as ([0]*3+[1]*58)");
  else if (m.layer_freq.find('[') != std::string::npos &&
           parse_layer_pattern(m.layer_freq).size() != static_cast<size_t>(m.layers))
    problems.add(Opt{"moe-layer-freq"}, ' ', quote(m.layer_freq), " has ",
                 parse_layer_pattern(m.layer_freq).size(), " layers, ", Opt{"num-layers"}, " says ",
                 m.layers);
  else if (m.plain_layers(m.layers) == m.layers)
    problems.add(Opt{"moe-layer-freq"}, ' ', quote(m.layer_freq), " leaves no layer for ", Opt{"num-experts"},
                 ' ', experts);
}

/// Complains if `option` is not at its default `otherwise`, although `what`, which it needs, is missing.
void needs(const char* option, int value, int otherwise, const char* what, Problems& problems) {
  if (value != otherwise) problems.add(Opt{option}, ' ', value, " needs ", Opt{what});
}

void check_dense(const ModelShape& m, Problems& problems) {
  const ModelShape plain;
  const char* const experts = "num-experts";
  needs("moe-router-topk", m.router_topk, plain.router_topk, experts, problems);
  needs("moe-ffn-hidden-size", m.expert_ffn, 0, experts, problems);
  needs("moe-shared-expert-intermediate-size", m.shared_ffn, 0, experts, problems);
  if (m.layer_freq != plain.layer_freq)
    problems.add(Opt{"moe-layer-freq"}, ' ', quote(m.layer_freq), " needs ", Opt{"num-experts"});
  if (m.capacity)
    problems.add(Opt{"moe-expert-capacity-factor"}, ' ', *m.capacity, " needs ", Opt{"num-experts"});
  if (m.dispatcher != plain.dispatcher)
    problems.add(Opt{"moe-token-dispatcher-type"}, ' ', enum_name(m.dispatcher), " needs ",
                 Opt{"num-experts"});
  const std::pair<const char*, bool> given[] = {{"moe-shared-expert-gate", m.shared_gate},
                                                {"moe-shared-expert-overlap", m.shared_overlap},
                                                {"moe-router-force-load-balancing", m.forced_balance},
                                                {"moe-router-enable-expert-bias", m.expert_bias},
                                                {"moe-router-load-balancing-type", !m.balance.empty()},
                                                {"moe-aux-loss-coeff", !m.loss_coeffs.empty()},
                                                {"moe-router-score-function", m.score_function.has_value()},
                                                {"moe-router-num-groups", m.router_groups.has_value()},
                                                {"moe-router-group-topk", m.group_topk.has_value()},
                                                {"moe-enable-deepep", m.deepep}};
  for (const auto& [option, is_given] : given)
    if (is_given) problems.add(Opt{option}, " needs ", Opt{"num-experts"});
}

void check_attention(const ModelShape& m, Problems& problems) {
  if (m.latent_attention && m.group_query)
    problems.add(Opt{"multi-latent-attention"}, " and ", Opt{"group-query-attention"},
                 " exclude each other; give one of them");
  if (m.latent_attention) return;
  const ModelShape plain;
  const char* const latent = "multi-latent-attention";
  needs("q-lora-rank", m.query_rank, plain.query_rank, latent, problems);
  needs("kv-lora-rank", m.key_rank, plain.key_rank, latent, problems);
  needs("qk-head-dim", m.key_channels, plain.key_channels, latent, problems);
  needs("qk-pos-emb-head-dim", m.key_rotated, plain.key_rotated, latent, problems);
  needs("v-head-dim", m.value_channels, plain.value_channels, latent, problems);
}

}  // namespace

std::string plain_layer_pattern(const std::string& text) {
  std::string_view inside = trim(text);
  if (inside.size() >= 2 && inside.front() == inside.back() &&
      (inside.front() == '\'' || inside.front() == '"'))
    inside = trim(inside.substr(1, inside.size() - 2));
  const auto is_sign = [](char c) { return std::string_view("[],+*()").find(c) != std::string_view::npos; };
  std::string out;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == ' ') {
      // Always finds one, since trimmed text does not end in a space.
      const size_t next = inside.find_first_not_of(' ', i);
      if (is_sign(out.back()) || is_sign(inside[next])) continue;
    }
    out += inside[i];
  }
  return out;
}

std::vector<int> parse_layer_pattern(const std::string& text) {
  const std::string plain = plain_layer_pattern(text);
  if (plain.find('[') != std::string::npos) return PatternReader(plain).read();
  const auto every = parse_int(plain);
  if (!every || *every < 1 || static_cast<size_t>(*every) > kMostLayers) return {};
  std::vector<int> out(static_cast<size_t>(*every), 0);
  out.front() = 1;
  return out;
}

void ModelShape::finish() {
  const int asked = kv_channels;
  ModelConfig::finish();
  if (latent_attention) {
    if (asked != 0 && asked != value_channels) unused_channels_ = asked;
    kv_channels = value_channels;
  }
  layer_freq = plain_layer_pattern(layer_freq);
  if (has_experts() && expert_ffn == 0) expert_ffn = ffn_hidden;
  every_ = layer_freq.find('[') == std::string::npos;
  const std::vector<int> pattern = parse_layer_pattern(layer_freq);
  if (pattern.empty()) return;  // validate() reports it
  with_experts_.assign(1, 0);
  for (const int has : pattern) with_experts_.push_back(with_experts_.back() + has);
}

void ModelShape::validate(Problems& problems) const {
  // The model is checked like one that is trained, without the features that are only planned.
  ModelConfig dense = trained();
  dense.experts.reset();
  dense.validate(problems);
  if (!has_experts()) check_model_type(dense, problems);
  if (layers > kMostLayers) problems.add(Opt{"num-layers"}, ' ', layers, " is more than ", kMostLayers);
  has_experts() ? check_experts(*this, problems) : check_dense(*this, problems);
  check_attention(*this, problems);
  if (unused_channels_ > 0)
    problems.add(Opt{"kv-channels"}, ' ', unused_channels_, " has no effect with ",
                 Opt{"multi-latent-attention"}, "; leave it out, or give ", Opt{"v-head-dim"});
}

int ModelShape::plain_layers(int count) const {
  if (!has_experts()) return 0;
  const int length = static_cast<int>(with_experts_.size()) - 1;
  const auto among = [&](int first) { return with_experts_[static_cast<size_t>(first)]; };
  if (every_) return count - count / length * among(length) - among(count % length);
  const int listed = std::min(count, length);  // further layers are like the pattern's last one
  return listed - among(listed) + (count - listed) * (1 - among(length) + among(length - 1));
}

bool ModelShape::has_balance_loss() const {
  const auto is_loss = [](const std::string& type) { return type.ends_with("aux_loss"); };
  const auto is_zero = [](const std::string& coeff) { return parse_double(coeff).value_or(0) == 0; };
  const bool named = balance.empty() || std::any_of(balance.begin(), balance.end(), is_loss);
  return named && (loss_coeffs.empty() || !std::all_of(loss_coeffs.begin(), loss_coeffs.end(), is_zero));
}

TokenImbalance ModelShape::expert_imbalance() const {
  if (!has_experts() || forced_balance) return {};
  const double wider = expected_largest(expert_count()) / expected_largest(kMeasuredExperts);
  const auto of_all = [&](double measured) { return 1 + (measured - 1) * wider; };
  double high = capacity.value_or(of_all(kWithLoss));
  if (has_balance_loss()) high = std::min(high, of_all(kWithLoss));
  return {1, expert_bias ? std::min(high, of_all(kWithBias)) : high};
}

TokenImbalance ModelShape::rank_imbalance(int ranks) const {
  TokenImbalance of_rank = expert_imbalance();
  if (ranks <= 1) return {};
  const double all = expert_count(), each = all / ranks;
  const double narrower = expected_largest(ranks) / expected_largest(expert_count());
  of_rank.high = 1 + (of_rank.high - 1) * std::sqrt((all - each) / (all - 1) / each) * narrower;
  return of_rank;
}

double expected_largest(int count) {
  // The integral of the chance that the largest exceeds x above 0, less that of the chance that it is below x
  // below 0. The trapezoidal rule is exact to ten digits for functions that fall as fast as this.
  constexpr double kStep = 0.125, kEnd = 8;
  const auto all_below = [&](double x) { return std::pow(std::erfc(-x / std::sqrt(2.0)) / 2, count); };
  double sum = 0.5 - all_below(0);  // half of both at 0
  for (double x = kStep; x <= kEnd; x += kStep) sum += 1 - all_below(x) - all_below(-x);
  return sum * kStep;
}

std::string beyond_our_trainer(const ModelShape& m) {
  if (m.has_experts()) return "mixtures of experts (--num-experts)";
  if (m.latent_attention) return "latent attention (--multi-latent-attention)";
  return m.predicted > 0 ? "the prediction of further tokens (--mtp-num-layers)" : "";
}

template std::vector<Field> fields_of<ModelShape>(ModelShape&);

}  // namespace megalith
