#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/finetune/examples.h"
#include "libcore/train/step/batch.h"

namespace megalith {

/// For each sequence, the numbers of the examples in it.
using Packs = std::vector<std::vector<int32_t>>;
/// Returns packs of one example each.
Packs one_by_one(const Examples&);
/// Packs the examples into few sequences of at most `rows` rows: best fit, longest examples first;
/// deterministic. No example may be longer than `rows`.
Packs pack(const Examples&, int64_t rows);

/// A source of the examples of `train`, then those of `dev`, each as one sample, then empty samples. `dev`
/// may be null. Both must outlive the result.
SampleSource in_order(const Examples& train, const Examples* dev);

struct OrderOptions {
  int64_t step = 1;     // samples of an optimizer step; empty samples fill up an epoch to whole steps
  bool shuffle = true;  // shuffles in each epoch, as numpy does with seed + epoch
  int64_t group = 1;    // number of consecutive packs that stay together: 2 for the answers of a pair
  /// If above 0, sorts the shuffled sequences within stretches of this many, longest first, so that sequences
  /// of similar length come together (transformers' group_by_length).
  int64_t sorted = 0;
  uint32_t seed = 0;
};

/// The samples of a run: epoch after epoch of packs. Sample numbers continue from one epoch to the next. The
/// samples that fill up the last step of an epoch are empty and do not count. Refers to the examples, which
/// must outlive it.
class TuningData {
 public:
  TuningData(const Examples&, Packs, const OrderOptions&);
  ~TuningData();

  int64_t packs() const { return static_cast<int64_t>(packs_.size()); }
  int64_t samples_of_epoch() const { return epoch_; }  // a multiple of OrderOptions::step
  /// The share of used rows in sequences of `rows` rows, from 0 to 1.
  double fill(int64_t rows) const;
  /// Bytes of memory that this object holds beside the examples, with the orders of the epochs that are read.
  size_t bytes() const;
  /// The samples. They refer to this object, which must outlive them.
  SampleSource source() const;

 private:
  struct Orders;
  /// The pack of a sample; null if the sample is empty.
  const std::vector<int32_t>* pack_of(int64_t sample) const;
  std::vector<int32_t> make_order(int64_t epoch) const;
  void read(int64_t sample, const SampleView&) const;

  const Examples& examples_;
  Packs packs_;
  OrderOptions options_;
  int64_t epoch_;
  std::vector<int64_t> rows_, counted_;  // number of rows and of counted labels of each pack
  std::unique_ptr<Orders> orders_;
};

}  // namespace megalith
