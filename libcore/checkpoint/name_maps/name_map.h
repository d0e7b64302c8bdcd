#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/model_config.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// How a tensor here becomes tensors there. "Rows" are those of our tensor with all axes but the hidden one
/// joined.
enum class Transform : uint8_t {
  kCopy,         // the same bytes
  kTranspose,    // there [in, out] (GPT-2's Conv1D)
  kSplitQkv,     // rows of each group: its queries, key, value; there one tensor each
  kJoinQkv,      // there one transposed tensor [h, q | k | v]; a bias stays [q | k | v]
  kSplitGateUp,  // {gate, up}; there one tensor each
};

/// An extent of a parameter, by the configuration.
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
/// kGroupHeads: query heads of a group, + 2; kHeadsWidth: heads * head.
int64_t extent_of(Dim dim, const ModelConfig& config);

/// When a model has the parameter.
enum class Presence : uint8_t { kAlways, kUntiedHead, kQkvBias, kLinearBias };

/// One parameter under both names; '#' stands for the layer.
struct NameRow {
  const char* ours;                 // as in Param::name
  std::vector<const char*> theirs;  // without NameMap::prefix
  Transform transform;
  std::vector<Dim> shape;  // ours, as in Param::global
  Presence presence = Presence::kAlways;
};

/// The names of a model family in Hugging Face's form, read in both directions.
struct NameMap {
  const char* family;        // config.json's "model_type"
  const char* architecture;  // and its "architectures"
  const char* prefix;        // of every name but the head's; a file without it is accepted
  bool always_biased;        // there every bias exists, so one that our model lacks is written as zeros
  /// In the order of depth; rows with '#' are consecutive and repeat for each layer.
  std::vector<NameRow> rows;
  /// Endings of names that carry no parameter.
  std::vector<const char*> skipped;
};
const NameMap& gpt2_names();
const NameMap& llama_names();
const NameMap& qwen2_names();    // as LLaMA's, with biases of queries, keys and values
const NameMap& mistral_names();  // as LLaMA's
std::span<const NameMap* const> all_name_maps();

/// A tensor there.
struct TheirTensor {
  std::string name;  // with the prefix
  Shape shape;
};
/// A row, for one layer of one model.
struct RenamedTensor {
  const NameRow* row;
  std::string ours;
  Shape shape;  // ours
  bool absent;  // our model lacks it, theirs does not: zeros
  std::vector<TheirTensor> theirs;
};
/// All tensors of a model in the order of depth.
std::vector<RenamedTensor> renamed_tensors(const NameMap& map, const ModelConfig& config);

/// `rows` rows that stand together on both sides.
struct RowRun {
  int64_t ours, theirs, rows;
};
/// Part `part` of renamed.theirs as rows of our tensor taken as a matrix: `columns` is its last axis, and 1
/// for a vector (a norm's weight, a bias of any shape). The runs follow each other there; with `transposed`
/// the tensor there is [columns, rows].
struct PartRows {
  std::vector<RowRun> runs;
  int64_t columns;
  bool transposed;

  int64_t rows() const;
};
PartRows part_rows(const RenamedTensor& renamed, size_t part);

}  // namespace megalith
