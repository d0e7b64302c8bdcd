#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/model_config.h"

namespace megalith {

/// How tokens reach the ranks that hold their experts.
enum class Dispatcher {
  kAllToAll,   // sends each copy of a token to the rank of its expert
  kAllGather,  // sends all tokens to all ranks
  kFlex,       // DeepEP: sends one copy of a token to each machine, which distributes it over the link
};
inline std::vector<EnumName<Dispatcher>> enum_names(Dispatcher) {
  return {{"alltoall", Dispatcher::kAllToAll},
          {"allgather", Dispatcher::kAllGather},
          {"flex", Dispatcher::kFlex}};
}

/// The number of tokens of the busiest expert divided by the mean over all experts: the bounds of this ratio
/// in a run.
struct TokenImbalance {
  double low = 1, high = 1;
  double at(double point) const { return low + point * (high - low); }
};

/// A model that can be planned: everything that is trained here (ModelConfig), and what only Megatron-LM
/// trains: mixtures of experts, multi-head latent attention (DeepSeek), and the prediction of further tokens.
/// Option names and meanings are Megatron's (megatron/training/arguments.py).
struct ModelShape : ModelConfig {
  static constexpr int kMostLayers = 1 << 16, kWidest = 1 << 24;
  int router_topk = 2;           // experts per token
  int expert_ffn = 0;            // width inside an expert; derived: ffn_hidden
  int shared_ffn = 0;            // total width of all shared experts; 0: none
  bool shared_gate = false;      // a sigmoid gate on the shared experts
  std::string layer_freq = "1";  // which layers have experts: parse_layer_pattern()
  /// The most tokens that an expert takes, relative to the mean; others are dropped.
  std::optional<double> capacity{};
  bool forced_balance = false, expert_bias = false;
  std::vector<std::string> balance = {};   // kinds of balancing of the router; empty: an auxiliary loss
  std::vector<std::string> loss_coeffs{};  // one coefficient for each of `balance`
  /// The score function of the router; unset: sigmoid with expert_bias, otherwise softmax.
  std::optional<std::string> score_function{};
  std::optional<int> router_groups{}, group_topk{};  // number of groups of experts, and of
                                                     // those that a token may choose from
  Dispatcher dispatcher = Dispatcher::kAllToAll;
  bool deepep = false;          // Megatron-LM requires it with kFlex
  bool shared_overlap = false;  // shared experts work while tokens travel to the others
  bool latent_attention = false;
  int query_rank = 0;  // width to which queries are compressed; 0: not compressed
  int key_rank = 512;  // width to which keys and values are compressed
  /// Channels per head; a key has key_channels + key_rotated.
  int key_channels = 128, key_rotated = 64, value_channels = 128;
  int predicted = 0;  // tokens predicted after the next one; each needs a layer and a head

  ModelShape() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): what can be trained can be planned
  ModelShape(const ModelConfig& trained) : ModelConfig(trained) {}
  /// The part of the shape that our trainer has options for.
  const ModelConfig& trained() const { return *this; }

  template <class V>
  void fields(V&& v) {
    common_fields(v);
    v("num-experts", experts, "Experts of a layer, in place of its feed-forward block.", between(1, 1 << 16),
      default_text("the block is dense"));
    v("moe-router-topk", router_topk, "Experts that a token is sent to.", at_least(1));
    v("moe-ffn-hidden-size", expert_ffn, "Width inside an expert.", between(0, kWidest),
      default_text("ffn-hidden-size"));
    v("moe-shared-expert-intermediate-size", shared_ffn,
      "Total width of the experts that every token passes; 0: there are none.", between(0, kWidest));
    v("moe-shared-expert-gate", shared_gate, "Gate the shared experts.");
    v("moe-layer-freq", layer_freq,
      "Which layers have experts: every N-th from the first, or a list of 0 and 1 such as "
      "([0]*3+[1]*58).",
      metavar("N|LIST"));
    v("moe-token-dispatcher-type", dispatcher,
      "How tokens get to their experts; flex is DeepEP's, with one copy for each machine.");
    v("moe-expert-capacity-factor", capacity, "Most tokens that an expert takes, as a multiple of the mean.",
      at_least(1), default_text("all are taken"));
    v("moe-router-force-load-balancing", forced_balance, "Every expert gets equally many tokens.");
    v("moe-router-enable-expert-bias", expert_bias, "A bias in the router keeps the experts balanced.");
    v("moe-router-load-balancing-type", balance, "What keeps the experts balanced.",
      one_of({"aux_loss", "seq_aux_loss", "global_aux_loss", "sinkhorn", "quantile_balancing", "none"}),
      default_text("aux_loss"));
    v("moe-aux-loss-coeff", loss_coeffs, "Weight of each such loss; 0: there is none.", metavar("X"),
      default_text("above 0"));
    v("moe-router-score-function", score_function, "How the router scores experts; a plan is the same.",
      one_of({"softmax", "sigmoid", "sqrtsoftplus"}),
      default_text("sigmoid with the router's bias, else softmax"));
    v("moe-router-num-groups", router_groups, "Groups of experts, of which a token chooses some.",
      between(1, 1 << 16), default_text("one"));
    v("moe-router-group-topk", group_topk, "Groups that a token chooses; needs moe-router-num-groups.",
      between(1, 1 << 16), default_text("all"));
    v("moe-enable-deepep", deepep, "What flex needs in Megatron-LM; always printed with it.");
    v("moe-shared-expert-overlap", shared_overlap,
      "Shared experts compute while tokens travel to the others.");
    v("multi-latent-attention", latent_attention, "Attention with compressed keys and values (DeepSeek).");
    v("q-lora-rank", query_rank, "Width that its queries are compressed to; 0: they are not.",
      between(0, 1 << 20));
    v("kv-lora-rank", key_rank, "Width that its keys and values are compressed to.", between(1, 1 << 20));
    v("qk-head-dim", key_channels, "Channels of a head's queries and keys that are not rotated.",
      between(1, 1 << 16));
    v("qk-pos-emb-head-dim", key_rotated, "Channels of a head's queries and keys that are rotated.",
      between(0, 1 << 16));
    v("v-head-dim", value_channels, "Channels of a head's values.", between(1, 1 << 16));
    v("mtp-num-layers", predicted, "Tokens predicted beyond the next, each by an additional layer.",
      between(0, 64));
  }
  void finish();
  void validate(Problems&) const;

  int expert_count() const { return experts.value_or(0); }
  bool has_experts() const { return expert_count() > 0; }
  /// The number of layers without experts among the first `count`; 0 for a dense model.
  int plain_layers(int count) const;
  /// The number of layers without experts from `begin` up to, but not including, `end`.
  int plain_layers(int begin, int end) const { return plain_layers(end) - plain_layers(begin); }

  /// Whether an auxiliary loss keeps the experts balanced.
  bool has_balance_loss() const;
  /// The imbalance of the busiest expert. It is 1 with forced balance; otherwise, of 64 experts, up to 1.72
  /// with an auxiliary loss and up to 1.04 with the router's bias (Wang et al. 2024, arXiv 2408.15664, table
  /// 2: MaxVio 0.72 and 0.04 at 1 billion parameters, quoted from memory). Of fewer experts the busiest
  /// exceeds the mean by less, as the largest of fewer normal numbers does. It is at most the capacity.
  TokenImbalance expert_imbalance() const;
  /// The imbalance of the busiest of `ranks` ranks with equally many experts each. The loads of a rank's
  /// experts partly even out: their mean varies like that of experts drawn at random without replacement. The
  /// busiest of fewer ranks also exceeds the mean by less, as the busiest of fewer experts does.
  TokenImbalance rank_imbalance(int ranks) const;

  // …_channels(): channels per head. …_width(): channels of all heads together.
  int query_channels() const { return latent_attention ? key_channels + key_rotated : kv_channels; }
  int output_channels() const { return latent_attention ? value_channels : kv_channels; }
  double query_width() const { return static_cast<double>(heads) * query_channels(); }
  double output_width() const { return static_cast<double>(heads) * output_channels(); }

 private:
  /// [i]: the number of layers with experts among the first i of the pattern.
  std::vector<int> with_experts_ = {0, 1};
  bool every_ = true;        // whether the pattern repeats
  int unused_channels_ = 0;  // a --kv-channels that was given although latent attention has sizes of its own
};

/// --moe-layer-freq without surrounding quotes and without spaces around the signs of a list.
std::string plain_layer_pattern(const std::string& text);
/// The pattern of --moe-layer-freq, 1 for a layer with experts and 0 for one without. "2" means every second
/// layer from the first; a list such as "[0]*3+[1]*58" names each layer, also in parentheses or one pair of
/// quotes. Empty for any other text.
std::vector<int> parse_layer_pattern(const std::string& text);

/// The expected largest of `count` numbers that vary normally, in standard deviations above their mean.
double expected_largest(int count);

/// The first feature of the model that only Megatron-LM trains, and its option; empty: there is none.
std::string beyond_our_trainer(const ModelShape&);

extern template std::vector<Field> fields_of<ModelShape>(ModelShape&);

}  // namespace megalith
