#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "libcore/base/shared_array.h"
#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/samples/split.h"

namespace megalith {

/// Which samples to draw from a dataset.
struct GptSpec {
  SequenceRange range;
  std::optional<int64_t> samples;  // at least so many, over as many epochs as it takes; nothing: one epoch
  int64_t seq_length = 0;          // L
  uint32_t seed = 1234;
  bool extra_token = true;     // a sample has L + 1 ids, the last one only a label
  bool drop_last = true;       // leave out the last sample when it is not full; else it is padded
  std::string name = "train";  // of the split, for messages
};

/// The order of samples, equal to Megatron's GPTDataset index for index (docs/formats/indexed.md, "sample
/// order"). Sequences are laid end to end in the order `documents` (Megatron's name; its entries are sequence
/// numbers), the row of ids is cut every L, and the pieces are shuffled.
struct GptIndex {
  SharedArray<int32_t> documents;  // sequence numbers, every epoch's
  // [n + 1, 2] pairs (place in `documents`, offset in that sequence): where each sample begins
  std::variant<SharedArray<int32_t>, SharedArray<int64_t>> samples;
  std::variant<SharedArray<uint32_t>, SharedArray<int64_t>> shuffle;  // [n] piece of each sample
  int64_t epochs = 1;
  bool last_epoch_apart = false;  // the last epoch was shuffled by itself

  int64_t size() const;
  int64_t piece(int64_t sample) const;
  std::pair<int64_t, int64_t> begin_of(int64_t piece) const;
};

/// kData when the range holds no token but samples are asked for (Megatron then never returns), when a last
/// sample that is not full, and is kept, would begin before an empty last sequence, or beyond 2^31-1
/// sequences or epochs.
GptIndex build_gpt_index(const IndexedDataset& data, const GptSpec& spec);

/// Element types that Megatron chooses, because its index files must be equal byte for byte: 64 bits only
/// where 32 do not hold the values.
bool wide_sample_index(int64_t documents, int32_t longest_sequence);
bool wide_shuffle_index(int64_t samples);

/// Where a sample is written: L elements each.
struct SampleView {
  std::span<int32_t> tokens;
  std::span<int32_t> labels;   // the token after each
  std::span<float> loss_mask;  // 1, or 0 where the label is padding
  /// The row at which the document of each token begins. Empty: not wanted. A reader that knows no documents
  /// leaves it at 0.
  std::span<int32_t> starts = {};
};

/// Samples of one dataset in Megatron's order. Copies share the mapped file and the index.
class GptDataset {
 public:
  /// `pad`: the id that fills a sample that is not full, and that takes no part in the loss wherever it is a
  /// label; -1: none, then only the filling is left out. With an `index_folder` (gpt_index_file.h) the index
  /// is taken from there, or built and kept there.
  GptDataset(IndexedDataset data, GptSpec spec, int64_t pad = -1, const std::string& index_folder = {});

  int64_t size() const { return index_.size(); }
  const GptIndex& index() const { return index_; }
  const GptSpec& spec() const { return spec_; }
  const IndexedDataset& data() const { return data_; }

  /// The ids of a sample with the filling: L, or L + 1 with the extra token. `sequences`, if given, receives
  /// how many sequences they are from.
  std::vector<int64_t> ids(int64_t sample, int64_t* sequences = nullptr) const;

  /// What the model is given. Padding reads as id 0, as Megatron does it.
  void get(int64_t sample, const SampleView& out) const;

 private:
  template <class Id>
  int64_t copy_ids(int64_t sample, std::span<Id> out) const;

  IndexedDataset data_;
  GptSpec spec_;
  int64_t pad_;
  GptIndex index_;
};

}  // namespace megalith
