#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "libcore/data/samples/gpt_dataset.h"
#include "libcore/model/stage.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// Writes sample number `index` of a data set (GptDataset::get, BlendedDataset::get).
using SampleReader = std::function<void(int64_t index, const SampleView&)>;

/// How one optimizer step's samples are dealt out: Megatron's MegatronPretrainingSampler. Samples go in order
/// of their number, in blocks of micro_batch * data_size, of which each data-parallel rank takes its
/// micro_batch in turn.
struct BatchShape {
  int64_t seq_length = 0;
  int64_t micro_batch = 0;
  int microbatches = 0;  // of this rank, in one step
  int data_rank = 0, data_size = 1;

  int64_t samples() const { return micro_batch * microbatches * data_size; }  // of one step, over all ranks
};

/// One rank's share of one step's samples, in the backend's memory: inputs are a sample's first seq_length
/// tokens, labels its last; all of them count in the loss.
class Batch {
 public:
  /// Makes its tensors in `arena`, which must outlive it.
  Batch(Arena& arena, const BatchShape&);
  /// Reads the samples of the step that begins when `consumed` samples are done.
  void load(Stream&, const SampleReader&, int64_t consumed);
  /// Each with grad_scale = 1 / (microbatches over all ranks * its tokens that count): loss and gradient of
  /// the step are the mean over its microbatches of each one's mean, as in Megatron.
  std::span<const Microbatch> microbatches() const { return microbatches_; }
  const BatchShape& shape() const { return shape_; }

  static size_t bytes(const BatchShape&);

 private:
  struct Place {
    View tokens, labels, loss_mask, samples;
  };
  /// Samples of one microbatch on the host, [b, s] as they are read and [s, b] as the model wants them.
  struct Host;
  void load_one(Stream&, const SampleReader&, int microbatch, Host&);

  BatchShape shape_;
  std::vector<Place> places_;
  std::vector<Microbatch> microbatches_;
};

}  // namespace megalith
