#pragma once

#include <cstdint>
#include <memory>

#include "libcore/data/samples/dataset_builder.h"
#include "libcore/text/tokenizer.h"
#include "libcore/train/data/data_set.h"
#include "libcore/train/data/fim.h"

namespace megalith {

/// What a run does with the samples of its datasets of tokens.
struct TokenRules {
  int64_t vocab_size = 0;                          // every id must be below it
  int64_t seed = 0;                                // of the draws for `fim`
  std::shared_ptr<const FimPermutation> fim = {};  // null: samples stay as they are
};

/// The samples of a part of the data, as the model receives them. `part` numbers the parts of a run (0:
/// train, 1: valid, 2: test, and so on for more validation sets). `data` must outlive the result. Reading
/// throws kData for an id outside the vocabulary: the .bin may have changed since its ids were checked at the
/// start, by the sidecar or by a scan.
DataSet data_set_of(const TrainingDataset& data, const TokenRules&, uint32_t part);

/// Changes the set's reader so that it marks the documents within a sample. A document ends with `eod`.
void tell_documents(DataSet& set, int32_t eod, bool mask_loss);

/// Which labels the reader of a set leaves in the loss. kSome: it must read a sample to know them.
enum class LabelsInLoss { kAll, kSome };

/// Makes the set one that an evaluation reads as a whole. Call this last. `labels`: their number in a sample.
/// If only some are in the loss, each sample is read once more for their number. Returns the bytes of memory
/// in which the set keeps these numbers.
size_t read_as_a_whole(DataSet& set, int64_t labels, LabelsInLoss in_loss);

}  // namespace megalith
