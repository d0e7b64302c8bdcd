#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/config/model_config.h"

namespace megalith {

/// How a family's config.json names its members. Null: the family has no such member.
struct ConfigKeys {
  const char *layers, *hidden, *heads, *ffn, *positions, *epsilon, *activation, *attention_dropout;
  const char* groups = nullptr;             // the number of heads of keys and values; null: as many as heads
  const char* head = nullptr;               // the size of a head; null: hidden / heads
  const char* older_positions = nullptr;    // read if there is no member `positions`
  const char* hidden_dropout = nullptr;     // null: there is none
  const char* embedding_dropout = nullptr;  // written equal to hidden_dropout
};

/// What transformers takes for members that a file leaves out.
struct ConfigDefaults {
  int positions;
  double epsilon;
  const char* activation;
  double dropout = 0;
  bool tied = false;  // tie_word_embeddings
  int head = 0;       // the size of a head; 0: hidden / heads
  int groups = 0;     // heads of keys and values; 0, or if the member is null: as many as heads
  double rotary_base = 10000;
  bool pads = false;  // there is a pad_token_id, perhaps beyond the vocabulary; null is written instead
  int window = 4096;  // tokens of a window, if the rule for windows asks for the member; 0: no window
};

/// Which linear layers have biases.
enum class BiasRule : uint8_t {
  kAll,
  kByFlags,  // all or none: "attention_bias" and "mlp_bias", which must be equal
  kQkv,      // the projection to queries, keys and values only
  kNone,
  kByFlag,     // all or none: Family::bias_flag
  kQkvByFlag,  // as kQkv or as kNone: Family::bias_flag
};

/// A flag of config.json, and what a file means that lacks it. Null key: the family has no such flag.
struct NamedFlag {
  const char* key = nullptr;
  bool otherwise = false;
};

/// Whether tokens see a window only.
enum class WindowRule : uint8_t {
  kNone,
  kAll,     // if "sliding_window" is not null; 4096 tokens if the file lacks it
  kByFlag,  // as kAll, if "use_sliding_window" is set; layers below "max_window_layers" (28) have no window
  kByType,  // as kAll, in the layers that "layer_types" names; see Family::full_interval
};

/// A flag of config.json that must have this value; a file that lacks it means this value, too.
struct FixedFlag {
  const char* key;
  bool value;
};

/// What config.json says about the rotation beyond its base and its scaling.
struct RotationRule {
  const char* share = nullptr;  // the rotated share of a head, outside "rope_parameters"; null: all of it
  double default_share = 1;
  const char* base = "rope_theta";  // outside "rope_parameters"
  /// Not 0: "original_max_position_embeddings" lies outside "rope_parameters", with this default, and the
  /// only scaling is longrope.
  int original_positions = 0;
};

/// A count of config.json that must have this value; a file that lacks it means this value, too.
struct FixedCount {
  const char* key;
  int value;
};

/// How GGUF files hold the family. Null architecture: the family is not written as GGUF.
struct GgufForm {
  const char* architecture = nullptr;
  bool joined = false;      // QKV is one tensor, and the first layer of the MLP is not gated
  bool neighbours = false;  // rotary angles apply to neighbours in a head, so that rows must be interleaved
};

/// A family of models, as data: which parts it is made of, and what its files call them. The row is all that
/// is known of a family; code that reads it tests the parts, never the name.
struct Family {
  const char* title;  // as in messages: "Qwen3"
  NameMap names;      // names.family is config.json's "model_type"
  const ConfigKeys* keys;
  ConfigDefaults defaults;
  PositionEmbedding position;
  Normalization norm;
  bool gated;                // --swiglu; the activation must be silu
  bool head_norms = false;   // --qk-layernorm
  bool joint_norms = false;  // these are over all heads: --qk-norm-all-heads
  NormPlacement norm_places = NormPlacement::kBefore;
  /// N: every N-th layer is not rotated, unless config.json has another interval; 0: all are rotated.
  int no_rope_interval = 0;
  BiasRule biases = BiasRule::kNone;
  WindowRule window = WindowRule::kNone;
  /// With WindowRule::kByType: every N-th layer has no window, unless config.json lists the types of layers.
  int full_interval = 0;
  bool rope_by_type = false;  // "rope_parameters" has an object for each type of layer
  /// "embedding_multiplier", "residual_multiplier", "attention_multiplier", "logits_scaling"; absent ones
  /// are 1.
  bool multipliers = false;
  std::vector<FixedFlag> fixed = {};
  NamedFlag bias_flag = {};  // for the two rules that name it
  RotationRule rotation = {};
  /// --parallel-residual, if the flag is set. Null key: the family has it always or never.
  NamedFlag parallel = {};
  int parallel_norms = 2;  // --parallel-norms
  bool one_group = false;  // all heads share one key and one value; the key for groups is null
  std::vector<FixedCount> fixed_counts = {};
  /// Tells the row from others of the same model_type: a flag, which a file that lacks it means to be false.
  /// Null key: the row is the only one.
  FixedFlag variant = {nullptr, false};
  GgufForm gguf = {};
  /// Name (known_split()) of the pre-tokenizer that transformers 5 uses for the family, whatever the
  /// tokenizer's files say. Null: transformers follows the files.
  const char* tokenizer_rules = nullptr;
};

/// All families, in the order in which family_of() tries them.
std::span<const Family> families();
/// The family with this "model_type", its first row if there are several; null if there is none.
const Family* find_family(std::string_view model_type);
/// The model types of all families, for messages: "gpt2, llama, qwen2".
std::string family_types();

/// The options of a model that the family cannot express; empty if it can express the model.
std::vector<std::string> misfits(const Family&, const ModelConfig&);
/// The family that --hf-model-type names or, without that, the first one that can express this configuration.
/// If there is none, throws kData; the message lists, for each family, the options that do not fit.
const Family& family_of(const ModelConfig&);
/// Reports an --hf-model-type that is not one of families(), or that cannot express the configuration.
void check_model_type(const ModelConfig&, Problems&);

}  // namespace megalith
