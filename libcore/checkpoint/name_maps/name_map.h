#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// How one of our tensors becomes tensors of the other format ("there"). "Rows" are those of our tensor with
/// all axes but the hidden one joined.
enum class Transform : uint8_t {
  kCopy,         // there the same bytes
  kTranspose,    // there [in, out] (GPT-2's Conv1D)
  kSplitQkv,     // ours: for each group its queries, key, value; there one tensor for each of these
  kJoinQkv,      // ours as for kSplitQkv; there one tensor [h, q | k | v], a bias [q | k | v]
  kSplitGateUp,  // ours: gates, then ups; there one tensor for each
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
  kHeadsWidth
};
/// kGroupHeads: query heads of a group plus 2 (key and value); kHeadsWidth: heads * head.
int64_t extent_of(Dim dim, const ModelConfig& config);

/// Which models have a parameter.
enum class Presence : uint8_t { kAlways, kUntiedHead, kQkvBias, kLinearBias };

/// A parameter, with our name for it and the names in the other format; '#' stands for the layer.
struct NameRow {
  const char* ours;                 // as in Param::name
  std::vector<const char*> theirs;  // without NameMap::prefix
  Transform transform;
  std::vector<Dim> shape;  // ours, as in Param::global
  Presence presence = Presence::kAlways;
};

/// The names of a model family in Hugging Face's format, for reading and writing.
struct NameMap {
  const char* family;        // config.json's "model_type"
  const char* architecture;  // config.json's "architectures"
  const char* prefix;        // of every name except the head's; files whose names lack it are accepted
  bool always_biased;        // there every bias exists: one that our model lacks is written as zeros
  /// From the bottom of the model to the top; rows with '#' are consecutive and repeat for each layer.
  std::vector<NameRow> rows;
  /// Endings of names that hold no parameter.
  std::vector<const char*> skipped;
};
const NameMap& gpt2_names();
const NameMap& llama_names();
const NameMap& qwen2_names();    // as LLaMA's, plus biases of queries, keys and values
const NameMap& mistral_names();  // as LLaMA's
std::span<const NameMap* const> all_name_maps();

/// A tensor of the other format.
struct TheirTensor {
  std::string name;  // with the prefix
  Shape shape;
};
/// A NameRow for one layer of one model.
struct RenamedTensor {
  const NameRow* row;
  std::string ours;
  Shape shape;  // ours
  bool absent;  // our model lacks it, but their format has it: zeros
  std::vector<TheirTensor> theirs;
};
/// All tensors of a model, from bottom to top.
std::vector<RenamedTensor> renamed_tensors(const NameMap& map, const ModelConfig& config);

/// `rows` rows that are contiguous both in our tensor (from row `ours` on) and there (from row `theirs` on).
struct RowRun {
  int64_t ours, theirs, rows;
};
/// Which rows of our tensor make part `part` of renamed.theirs. Our tensor is taken as a matrix: `columns` is
/// its last axis, or 1 for a vector (a norm's weight, a bias of any shape). The runs follow each other there;
/// if `transposed`, the tensor there is [columns, rows].
struct PartRows {
  std::vector<RowRun> runs;
  int64_t columns;
  bool transposed;

  int64_t rows() const;
};
PartRows part_rows(const RenamedTensor& renamed, size_t part);

}  // namespace megalith
