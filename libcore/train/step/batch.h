#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "libcore/config/train_config.h"
#include "libcore/model/stage.h"
#include "libcore/tensor/arena.h"
#include "libcore/train/data/data_set.h"

namespace megalith {

/// How one optimizer step's samples are distributed: Megatron's MegatronPretrainingSampler. Samples are taken
/// in order of their number, in blocks of micro_batch * data_size, of which each data-parallel rank takes its
/// micro_batch in turn.
struct BatchShape {
  int64_t seq_length = 0;
  int64_t micro_batch = 0;
  int microbatches = 0;  // of this rank in one step, at most
  int data_rank = 0, data_size = 1;
  int context_rank = 0, context_size = 1;  // among the ranks that share each sample
  std::optional<BatchRamp> ramp = {};      // steps have fewer microbatches at first
  /// Micro-batches shorter than seq_length have a multiple of this many rows.
  int64_t length_step = 1;
  bool attention_starts = false, position_starts = false;  // which of Microbatch's tensors exist

  /// Microbatches of this rank in the step that begins after `consumed` samples.
  int microbatches_at(int64_t consumed) const {
    if (!ramp) return microbatches;
    return static_cast<int>(ramp->at(consumed, samples()) / (micro_batch * data_size));
  }
  int64_t rows() const { return seq_length / context_size; }  // of a sample on this rank
  bool starts() const { return attention_starts || position_starts; }
  /// Samples of a full step, over all ranks.
  int64_t samples() const { return micro_batch * microbatches * data_size; }
};

/// One rank's share of one step's samples, in the backend's memory: inputs are the first seq_length tokens of
/// a sample, labels the last seq_length. A context-parallel rank has the rows that context_rows() gives.
class Batch {
 public:
  /// Allocates its tensors in `arena`, which must outlive it, and host_bytes() of host memory.
  Batch(Arena& arena, const BatchShape&);
  ~Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) = delete;

  /// Loads the samples of the step that begins after `consumed` samples, and starts a thread that reads those
  /// of the next step with a copy of `source`, so that the next call only copies them if it is for that step
  /// and has the same reader. What `source` refers to must outlive this object. Throws what the reader threw
  /// for one of this step's samples.
  void load(Stream&, const SampleSource& source, int64_t consumed);
  /// As load(), but does not read ahead and leaves alone what is being read ahead. For evaluation.
  void load_now(Stream&, const SampleSource& source, int64_t consumed);
  /// The microbatches of the last load. Each has grad_scale = 1 / (microbatches over all ranks * counted
  /// tokens of its samples), so that loss and gradient of the step are the mean over its microbatches of each
  /// one's mean, as in Megatron. If the source gives counts, grad_scale = 1 / (the whole step's count), as in
  /// transformers.
  std::span<const Microbatch> microbatches() const {
    return {microbatches_.data(), static_cast<size_t>(loaded_)};
  }
  const BatchShape& shape() const { return shape_; }
  /// The index of a sample of the current step among all samples of the step, on all ranks.
  int64_t place(int microbatch, int64_t column) const {
    return (int64_t{microbatch} * shape_.data_size + shape_.data_rank) * shape_.micro_batch + column;
  }
  /// Multiplies the loss of each sample of the current step by its weight; `weights` are in the order of all
  /// ranks' samples. The weights then replace the scale: grad_scale is 1.
  void weigh(Stream&, std::span<const double> weights);

  static size_t bytes(const BatchShape&);
  /// Bytes of host memory for reading samples before they are copied; allocated once, so that steps allocate
  /// nothing.
  static size_t host_bytes(const BatchShape&);

 private:
  struct BatchViews {
    View tokens, labels, loss_mask, samples;
    View starts;  // empty unless BatchShape::starts()
  };
  class Staging;
  struct Host;
  static std::vector<BatchViews> make_views(Arena&, const BatchShape&, int microbatches);
  void read_ahead(const SampleSource&, int64_t consumed);
  void put(Stream&, const Staging&, int part, int microbatch);
  /// d(loss of the step)/d(sum of a microbatch's token losses) for a microbatch with `counted` labels that
  /// count.
  double scale_of(double counted) const;

  BatchShape shape_;
  int64_t step_counted_ = 0;  // labels that count in the current step; 0: the source does not say
  std::vector<BatchViews> views_;
  std::vector<Microbatch> microbatches_;
  int loaded_ = 0;  // how many of microbatches_ the last load filled
  std::unique_ptr<Host> host_;
};

}  // namespace megalith
