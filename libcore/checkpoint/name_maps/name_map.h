#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// How one of our tensors becomes tensors of the other format, which these comments call "there". The rows of
/// our tensor are all its axes except the hidden one, joined.
enum class Transform : uint8_t {
  kCopy,         // there: the same bytes
  kTranspose,    // there: [in, out] (GPT-2's Conv1D)
  kSplitQkv,     // ours: for each group its queries, key, value; there: one tensor each for q, k and v
  kJoinQkv,      // ours: as for kSplitQkv; there: one weight [h, q | k | v] and one bias [q | k | v]
  kStackQkv,     // ours: as for kSplitQkv; there: one weight [q | k | v, h] and one bias [q | k | v]
  kSplitGateUp,  // ours: gates, then ups; there: one tensor for the gates, one for the ups
};

/// An extent of a parameter, as a function of the configuration.
enum class Dim : uint8_t {
  kVocab,
  kPositions,
  kHidden,
  kFfn,
  kTwo,
  kGroups,
  kGroupHeads,
  kHead,
  kHeadsWidth,
  kKeysWidth
};
/// The number that `dim` stands for. kGroupHeads: query heads of a group plus 2 (key and value); kHeadsWidth:
/// heads * head, kKeysWidth: groups * head.
int64_t extent_of(Dim dim, const ModelConfig& config);

/// Which models have a certain parameter.
enum class Presence : uint8_t {
  kAlways,
  kUntiedHead,
  kQkvBias,
  kLinearBias,
  kHeadNorms,     // --qk-layernorm, of each head by itself
  kAllHeadNorms,  // --qk-layernorm --qk-norm-all-heads
  kNormBias,
  kSecondNorm,
  kSecondNormBias
};

/// Replaces the first '#' of a name such as "decoder.layers.#.mlp.linear_fc1" by the layer's number. A name
/// without '#' stays as it is.
std::string with_layer(std::string name, int layer);

/// A parameter: our name for it and its names in the other format. '#' stands for the layer.
struct NameRow {
  const char* ours;                 // our name, as in Param::name
  std::vector<const char*> theirs;  // without NameMap::prefix
  Transform transform;
  std::vector<Dim> shape;  // of our tensor, as in Param::global
  Presence presence = Presence::kAlways;
};

/// The tensor names of a model family in Hugging Face's format, or in another one, for reading and writing.
struct NameMap {
  const char* family;        // config.json's "model_type"
  const char* architecture;  // config.json's "architectures"
  const char* prefix;        // of every name except the head's; a file may omit it
  bool always_biased;        // their format has every bias: one that our model lacks is written as zeros
  /// Ordered from the bottom of the model to the top. Rows with '#' are consecutive and repeat for each
  /// layer.
  std::vector<NameRow> rows;
  /// Endings of names that hold no parameter.
  std::vector<const char*> skipped;
  /// What a user does whose file has a head of its own, although the configuration ties it to the embedding.
  const char* to_untie = "set \"tie_word_embeddings\" to false";
};
/// The name of the head's weight there.
const char* head_name(const NameMap&);
const NameMap& gpt2_names();
/// LLaMA's names, and those of parameters that only later families with its names have, such as Qwen3.
const NameMap& llama_names();
const NameMap& phi3_names();
const NameMap& starcoder2_names();
const NameMap& gpt_neox_names();
/// Falcon's names; with two norms in a layer or with one, since these have other names.
const NameMap& falcon_names(int layer_norms);
/// LLaMA's names with OLMo 2's norms: after the branches, and over all heads.
const NameMap& olmo2_names();

/// A tensor of the other format.
struct TheirTensor {
  std::string name;  // with the prefix
  Shape shape;
};
/// A NameRow, applied to one layer of one model.
struct RenamedTensor {
  const NameRow* row;
  int layer;  // 0 for a row that does not repeat
  std::string ours;
  Shape shape;  // of our tensor
  bool absent;  // our model lacks the tensor, but their format has it: it is written as zeros
  std::vector<TheirTensor> theirs;
};
/// All tensors of a model, from bottom to top.
std::vector<RenamedTensor> renamed_tensors(const NameMap& map, const ModelConfig& config);

/// A run of `rows` rows that is contiguous both in our tensor (from row `ours` on) and in the other format's
/// tensor (from row `theirs` on).
struct RowRun {
  int64_t ours, theirs, rows;
};
/// The rows of our tensor that form tensor number `part` of renamed.theirs. Our tensor is viewed as a matrix
/// with `columns` columns: its last axis, or 1 for a vector (a norm's weight, a bias of any shape). In the
/// other format, the runs follow each other; if `transposed`, the tensor there is [columns, rows].
struct PartRows {
  std::vector<RowRun> runs;
  int64_t columns;
  bool transposed;

  int64_t rows() const;
};
PartRows part_rows(const RenamedTensor& renamed, size_t part);

}  // namespace megalith
