#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/finetune/examples.h"
#include "libcore/train/step/batch.h"

namespace megalith {

/// For each sequence, the numbers of the examples that share it.
using Packs = std::vector<std::vector<int32_t>>;
/// Each example on its own.
Packs one_by_one(const Examples&);
/// Packs the examples into few sequences of at most `rows` rows: best fit, longest examples first;
/// deterministic. No example may be longer than `rows`.
Packs pack(const Examples&, int64_t rows);

/// The examples of `train` and then of `dev`, each as one sample, followed by empty samples. `dev` may be
/// null. Both must outlive the result.
SampleSource in_order(const Examples& train, const Examples* dev);

struct OrderOptions {
  int64_t step = 1;     // samples of an optimizer step; empty samples fill up an epoch to whole steps
  bool shuffle = true;  // again in each epoch, by numpy's shuffle with seed + epoch
  int64_t group = 1;    // consecutive packs that stay together: the two answers of a pair
  /// Puts sequences of similar length together: the shuffled ones are sorted within stretches of this many,
  /// longest first (as transformers' group_by_length); 0: not sorted.
  int64_t sorted = 0;
  uint32_t seed = 0;
};

/// The samples of a run: epoch after epoch of packs. Sample numbers continue from one epoch to the next. The
/// samples that fill up an epoch's last step are empty and count nothing. Refers to the examples, which must
/// outlive it.
class TuningData {
 public:
  TuningData(const Examples&, Packs, const OrderOptions&);
  ~TuningData();

  int64_t packs() const { return static_cast<int64_t>(packs_.size()); }
  int64_t samples_of_epoch() const { return epoch_; }  // a multiple of OrderOptions::step
  /// How full sequences of `rows` rows are, from 0 to 1.
  double fill(int64_t rows) const;
  /// Refers to this object, which must outlive it.
  SampleSource source() const;

 private:
  struct Orders;
  /// The pack of a sample; null: an empty sample.
  const std::vector<int32_t>* pack_of(int64_t sample) const;
  std::vector<int32_t> make_order(int64_t epoch) const;
  void read(int64_t sample, const SampleView&) const;

  const Examples& examples_;
  Packs packs_;
  OrderOptions options_;
  int64_t epoch_;
  std::vector<int64_t> rows_, counted_;  // of each pack
  std::unique_ptr<Orders> orders_;
};

}  // namespace megalith
