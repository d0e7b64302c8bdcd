#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace megalith {

/// Which samples each data-parallel rank takes: Megatron's `--dataloader-type single`. Samples are dealt in
/// order, in rounds of micro_batch * ranks, from the first one not yet consumed; rank r gets [r *
/// micro_batch, (r + 1) * micro_batch) of each round; an incomplete last round is dropped.
struct BatchSamplerSpec {
  int64_t size = 0;         // of the dataset
  int64_t consumed = 0;     // by all ranks together, so far
  int64_t micro_batch = 1;  // samples of one rank in one round
  int rank = 0, ranks = 1;  // data-parallel
};

class BatchSampler {
 public:
  explicit BatchSampler(const BatchSamplerSpec& spec);

  /// Rounds left.
  int64_t remaining() const;
  /// Writes the next micro_batch sample numbers of this rank; or takes nothing and returns false if none are
  /// left.
  bool next(std::span<int64_t> samples);
  /// Samples taken by all ranks together, including earlier ones.
  int64_t consumed() const { return spec_.consumed; }

 private:
  BatchSamplerSpec spec_;
};

/// How long a run is.
struct RunLength {
  int64_t train_iters = 0, global_batch = 1;
  std::optional<int64_t> train_samples = {};  // instead of train_iters * global_batch
  int64_t eval_interval = 1, eval_iters = 0;
};

/// How many samples to request of train, valid and test (Megatron's get_train_valid_test_num_samples).
std::array<int64_t, 3> requested_samples(const RunLength& run);

/// Validation samples consumed before iteration `iteration` (Megatron's update of consumed_valid_samples), so
/// that a resumed run evaluates on the same ones.
int64_t consumed_valid_samples(const RunLength& run, int64_t iteration);

}  // namespace megalith
