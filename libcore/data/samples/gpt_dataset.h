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
  bool extra_token = true;     // a sample has L + 1 ids, of which the last one is only a label
  bool drop_last = true;       // leave out an incomplete last sample; if false, pad it
  std::string name = "train";  // name of the split, for messages
};

/// The order of samples, equal to Megatron's GPTDataset index for index (docs/formats/indexed.md, "sample
/// order"). Sequences are laid end to end in the order of `documents` (Megatron's name: its entries are
/// sequence numbers). The resulting row of ids is split into pieces of L ids, and the pieces are shuffled.
struct GptIndex {
  SharedArray<int32_t> documents;  // sequence numbers of all epochs
  // Where each piece begins: n + 1 pairs (index in `documents`, offset in that sequence).
  std::variant<SharedArray<int32_t>, SharedArray<int64_t>> samples;
  std::variant<SharedArray<uint32_t>, SharedArray<int64_t>> shuffle;  // for each sample, its piece
  int64_t epochs = 1;
  bool last_epoch_apart = false;  // the last epoch was shuffled separately

  int64_t size() const;
  int64_t piece(int64_t sample) const;
  std::pair<int64_t, int64_t> begin_of(int64_t piece) const;
};

/// Builds the index. Throws kData in three cases: samples are requested, but the range holds no token
/// (Megatron then never returns); an incomplete last sample is kept, but the last sequence in the order is
/// empty, so that the sample cannot end in it; there are more than 2^31-1 sequences or epochs.
GptIndex build_gpt_index(const IndexedDataset& data, const GptSpec& spec);

/// Whether the elements of GptIndex::samples and GptIndex::shuffle have 64 bits, which they have only if 32
/// bits do not suffice. The rule is Megatron's, so that its index files are equal byte for byte.
bool wide_sample_index(int64_t documents, int32_t longest_sequence);
bool wide_shuffle_index(int64_t samples);

/// The arrays into which a sample is written. Each has L elements.
struct SampleView {
  std::span<int32_t> tokens;
  std::span<int32_t> labels;   // the token after each of `tokens`
  std::span<float> loss_mask;  // 1, or 0 if the label is padding
  /// For each token, the position in the sample at which its document begins. mark_documents() writes it;
  /// GptDataset::get() does not. Empty if it is not wanted.
  std::span<int32_t> starts = {};
};

/// Samples of one dataset in Megatron's order. Copies share the mapped file and the index.
class GptDataset {
 public:
  /// `pad`: the id that fills an incomplete sample. Wherever this id is a label, the loss mask is 0. If `pad`
  /// is -1, no id of the vocabulary is padding, and only the filling is left out of the loss. If
  /// `index_folder` is not empty, the index is kept there, and is read from there if it exists
  /// (gpt_index_file.h).
  GptDataset(IndexedDataset data, GptSpec spec, int64_t pad = -1, const std::string& index_folder = {});

  int64_t size() const { return index_.size(); }
  const GptIndex& index() const { return index_; }
  const GptSpec& spec() const { return spec_; }
  const IndexedDataset& data() const { return data_; }

  /// The ids of a sample, padded: L ids, or L + 1 with the extra token. If `sequences` is not null, it
  /// receives the number of sequences that the ids come from.
  std::vector<int64_t> ids(int64_t sample, int64_t* sequences = nullptr) const;

  /// Writes what the model receives for a sample. Padding becomes id 0, as in Megatron.
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
