#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "libcore/base/random.h"
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

/// Whether the elements of GptIndex::samples and GptIndex::shuffle have 64 bits, which they have only if 32
/// bits do not suffice. The rule is Megatron's, so that its index files are equal byte for byte.
bool wide_sample_index(int64_t documents, int32_t longest_sequence);
bool wide_shuffle_index(int64_t samples);

/// What is known of an index before it is built.
struct GptIndexPlan {
  int64_t tokens_per_epoch = 0, epochs = 1;
  int64_t extra = 1;  // ids that two pieces share: 1 with the extra token, else 0
  /// The number of samples before the last epoch, if the last epoch is shuffled separately; otherwise -1. As
  /// in Megatron, it is shuffled separately if less than 80 % of it is needed.
  int64_t apart = -1;
  int64_t documents = 0, pieces = 0;  // elements of GptIndex::documents and GptIndex::shuffle
  bool wide_samples = false, wide_shuffle = false;

  /// Bytes of the three arrays of the index.
  size_t bytes() const;
};

/// Does not read the sequences' lengths. Throws kData if samples are requested, but the range holds no token
/// (Megatron then never returns), or if there are more than 2^31-1 sequences or epochs.
GptIndexPlan plan_gpt_index(const IndexedDataset& data, const GptSpec& spec);

/// Computes the arrays of an index, into memory of the caller. The calls must come in this order, since one
/// sequence of random numbers goes through them. `data` and `spec` must outlive the object. Throws Stopped
/// (io/streams/stop_signal.h) if a StopSignal exists and receives a signal.
class GptIndexMaker {
 public:
  GptIndexMaker(const IndexedDataset& data, const GptSpec& spec);
  const GptIndexPlan& plan() const { return plan_; }

  /// All plan().documents entries.
  void documents(std::span<int32_t> out);
  /// The next out.size() / 2 of the plan().pieces + 1 pairs, where `documents` is what documents() wrote. T
  /// is int64_t with plan().wide_samples. After the last pair throws kData if an incomplete last sample is
  /// kept, but the last sequence in the order is empty, so that the sample cannot end in it.
  template <class T>
  void samples(std::span<const int32_t> documents, std::span<T> out);
  /// All plan().pieces entries. T is int64_t with plan().wide_shuffle.
  template <class T>
  void shuffle(std::span<T> out);

 private:
  void next_piece(std::span<const int32_t> documents);

  const IndexedDataset& data_;
  const GptSpec& spec_;
  GptIndexPlan plan_;
  NumpyRandomState random_;
  int64_t rows_ = 0;             // pairs written so far
  int64_t at_ = 0, offset_ = 0;  // the last one
};

/// Builds the index in memory, which has large pages if the system has them. Throws what plan_gpt_index() and
/// GptIndexMaker throw.
GptIndex build_gpt_index(const IndexedDataset& data, const GptSpec& spec);

}  // namespace megalith
