#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "libcore/data/indexed/indexed_dataset.h"
#include "libcore/data/samples/gpt_index.h"

namespace megalith {

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
