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
  std::optional<int64_t> samples;  // at least this many, over as many epochs as needed; empty: one epoch
  int64_t seq_length = 0;          // L
  uint32_t seed = 1234;
  bool extra_token = true;     // a sample has L + 1 ids; the last one is only a label
  bool drop_last = true;       // leave out an incomplete last sample; otherwise it is padded
  std::string name = "train";  // of the split, for messages
};

/// The order of samples, equal to Megatron's GPTDataset index for index (docs/formats/indexed.md, "sample
/// order"). Sequences are laid end to end in the order `documents` (Megatron's name; its entries are sequence
/// numbers), the row of ids is cut every L, and the pieces are shuffled.
struct GptIndex {
  SharedArray<int32_t> documents;  // sequence numbers of all epochs
  // [n + 1, 2] pairs (place in `documents`, offset in that sequence): where each sample begins
  std::variant<SharedArray<int32_t>, SharedArray<int64_t>> samples;
  std::variant<SharedArray<uint32_t>, SharedArray<int64_t>> shuffle;  // [n] piece of each sample
  int64_t epochs = 1;
  bool last_epoch_apart = false;  // the last epoch was shuffled separately

  int64_t size() const;
  int64_t piece(int64_t sample) const;
  std::pair<int64_t, int64_t> begin_of(int64_t piece) const;
};

/// kData if samples are requested but the range holds no token (Megatron then never returns); if an
/// incomplete last sample that is kept would begin before an empty last sequence; and beyond 2^31-1 sequences
/// or epochs.
GptIndex build_gpt_index(const IndexedDataset& data, const GptSpec& spec);

/// The element types that Megatron chooses, since its index files must be equal byte for byte: 64 bits only
/// if 32 do not hold the values.
bool wide_sample_index(int64_t documents, int32_t longest_sequence);
bool wide_shuffle_index(int64_t samples);

/// Where a sample is written, L elements each.
struct SampleView {
  std::span<int32_t> tokens;
  std::span<int32_t> labels;   // the token after each
  std::span<float> loss_mask;  // 1, or 0 if the label is padding
  /// For each token, the row at which its document begins. Empty: not wanted. A reader without documents
  /// leaves it at 0.
  std::span<int32_t> starts = {};
};

/// Samples of one dataset in Megatron's order. Copies share the mapped file and the index.
class GptDataset {
 public:
  /// `pad`: the id that fills an incomplete sample and takes no part in the loss wherever it is a label; -1:
  /// none, so that only the filling is left out. With an `index_folder` (gpt_index_file.h) the index is taken
  /// from there, or built and kept there.
  GptDataset(IndexedDataset data, GptSpec spec, int64_t pad = -1, const std::string& index_folder = {});

  int64_t size() const { return index_.size(); }
  const GptIndex& index() const { return index_; }
  const GptSpec& spec() const { return spec_; }
  const IndexedDataset& data() const { return data_; }

  /// The ids of a sample with the filling: L, or L + 1 with the extra token. `sequences`, if given, receives
  /// the number of sequences from which they come.
  std::vector<int64_t> ids(int64_t sample, int64_t* sequences = nullptr) const;

  /// What the model receives. Padding becomes id 0, as in Megatron.
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
