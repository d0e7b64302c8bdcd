#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace megalith {

/// Which samples each data-parallel rank takes: Megatron's `--dataloader-type single`. Samples are dealt out
/// in order, from the first one not yet consumed, in rounds of micro_batch * ranks. Rank r takes samples [r *
/// micro_batch, (r + 1) * micro_batch) of each round. An incomplete last round is dropped.
struct BatchSamplerSpec {
  int64_t size = 0;         // number of samples in the dataset
  int64_t consumed = 0;     // samples that all ranks together have consumed so far
  int64_t micro_batch = 1;  // samples that one rank takes in one round
  int rank = 0, ranks = 1;  // this data-parallel rank; number of ranks
};

class BatchSampler {
 public:
  explicit BatchSampler(const BatchSamplerSpec& spec);

  /// Number of rounds that are left.
  int64_t remaining() const;
  /// Writes the sample numbers of this rank's next round (micro_batch of them). If no round is left, returns
  /// false and changes nothing.
  bool next(std::span<int64_t> samples);
  /// Samples that all ranks together have taken, including spec.consumed.
  int64_t consumed() const { return spec_.consumed; }

 private:
  BatchSamplerSpec spec_;
};

/// The options that determine how long a run is.
struct RunLength {
  int64_t train_iters = 0, global_batch = 1;
  std::optional<int64_t> train_samples = {};  // if set, replaces train_iters * global_batch
  int64_t eval_interval = 1, eval_iters = 0;
};

/// The numbers of train, valid and test samples that a run requests (Megatron's
/// get_train_valid_test_num_samples); INT64_MAX in place of a greater one.
std::array<int64_t, 3> requested_samples(const RunLength& run);

/// The number of validation samples that a run has consumed before iteration `iteration`, so that a resumed
/// run evaluates on the same samples (Megatron's update of consumed_valid_samples).
int64_t consumed_valid_samples(const RunLength& run, int64_t iteration);

}  // namespace megalith
