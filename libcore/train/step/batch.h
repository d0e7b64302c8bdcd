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

/// How the samples of one optimizer step are distributed over the ranks, as in Megatron's
/// MegatronPretrainingSampler: samples are read in the order of their numbers, in blocks of micro_batch *
/// data_size. The data-parallel ranks in turn get micro_batch samples of each block.
struct BatchShape {
  int64_t seq_length = 0;
  int64_t micro_batch = 0;
  int microbatches = 0;  // microbatches of this rank in one step, at most
  int data_rank = 0, data_size = 1;
  int context_rank = 0, context_size = 1;  // position among the ranks that share each sample
  std::optional<BatchRamp> ramp = {};      // if set, the first steps have fewer microbatches
  std::vector<BatchLevel> levels = {};     // if not empty, the batch of each step; `microbatches` is the most
  /// The number of rows of a micro-batch shorter than seq_length is rounded up to a multiple of this.
  int64_t length_step = 1;
  bool attention_starts = false, position_starts = false;  // whether documents are told apart
  bool gaps = false;                                       // whether Microbatch has them
  /// For a device that computes while its host does something else: host memory for two steps, loss masks
  /// also where every label counts, and a slot (Batch::put_in_slot()).
  bool on_gpu = false;

  /// Microbatches of this rank in the step that begins after `consumed` samples.
  int microbatches_at(int64_t consumed) const {
    if (!levels.empty()) return static_cast<int>(batch_at(levels, consumed) / (micro_batch * data_size));
    if (!ramp) return microbatches;
    return static_cast<int>(ramp->at(consumed, samples()) / (micro_batch * data_size));
  }
  int64_t rows() const { return seq_length / context_size; }  // rows of a sample on this rank
  bool starts() const { return attention_starts || position_starts; }
  /// Samples of a full step, over all ranks.
  int64_t samples() const { return micro_batch * microbatches * data_size; }
};

/// One rank's share of one step's samples, in the backend's memory: inputs are the first seq_length tokens of
/// a sample, labels the last seq_length. A context-parallel rank has the rows that context_rows() gives.
class Batch {
 public:
  /// Allocates its tensors in `arena`, which must outlive it, and host_bytes() of host memory. If `device`,
  /// which must outlive it, copies late, and the system locks pages, a step's samples go to it beside the
  /// work of the step before.
  Batch(Arena& arena, const BatchShape&, Backend* device = nullptr);
  ~Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) = delete;

  /// Loads the samples of the step that begins after `consumed` samples, for the later work of the stream. If
  /// the next call is for the step after it, it only copies what read_on() has read with a copy of `source`,
  /// so it must have the same source. What `source` refers to must outlive this object. Throws what the
  /// reader threw for one of this step's samples.
  void load(Stream&, const SampleSource& source, int64_t consumed);
  /// Starts a thread that reads the samples of the step after the one that was loaded. On a device that
  /// copies late, it waits until the step before the loaded one has its samples: call it when that step is
  /// done.
  void read_on();
  /// No work that is enqueued on the stream later reads the samples of the last load().
  void release(Stream&);
  /// Copies a microbatch of the last load() to the slot, for the later work of the stream, and returns it.
  /// Its views are the same for every microbatch with as many rows, and so are its numbers: its grad_scale is
  /// in the device's memory. Only with BatchShape::on_gpu, and not after weigh().
  Microbatch put_in_slot(Stream&, int microbatch);
  /// As load(), but neither reads ahead nor discards what load() is reading ahead. For evaluation.
  void load_now(Stream&, const SampleSource& source, int64_t consumed);
  /// The microbatches of the last load. grad_scale of a microbatch is 1 / (microbatches over all ranks *
  /// counted tokens of its samples), as in Megatron: each microbatch is averaged on its own, and loss and
  /// gradient of the step are the means of these averages. If the source gives counts, grad_scale is 1 /
  /// (count of the whole step), as in transformers.
  std::span<const Microbatch> microbatches() const {
    return {microbatches_.data(), static_cast<size_t>(loaded_)};
  }
  const BatchShape& shape() const { return shape_; }
  /// The index of a sample of this rank among all ranks' samples of the current step.
  int64_t place(int microbatch, int64_t column) const {
    return (int64_t{microbatch} * shape_.data_size + shape_.data_rank) * shape_.micro_batch + column;
  }
  /// Multiplies the loss of each sample of the current step by its weight and sets grad_scale to 1, so the
  /// weights replace it. `weights` are in the order of all ranks' samples.
  void weigh(Stream&, std::span<const double> weights);

  static size_t bytes(const BatchShape&);
  /// Bytes of host memory into which samples are read before they are copied. They are allocated once, so
  /// that steps allocate nothing.
  static size_t host_bytes(const BatchShape&);

 private:
  struct BatchViews {
    View tokens, labels, loss_mask, samples;
    View starts;      // where documents begin; empty unless BatchShape::starts()
    View gaps;        // see Microbatch; empty unless BatchShape::gaps
    View grad_scale;  // [1] f32; empty unless BatchShape::on_gpu
    View block;       // the bytes of all of these; in host and device memory they have the same places
  };
  class Staging;
  struct Host;
  struct LateUploads;
  static std::vector<BatchViews> make_views(Arena&, const BatchShape&, int microbatches);
  void read_ahead(const SampleSource&, int64_t consumed);
  void put(Stream&, const Staging&, int part, int microbatch);
  void put_late(Stream&, const Staging&);
  /// The microbatch that these views of `rows` rows hold.
  Microbatch microbatch_in(const BatchViews&, int64_t rows) const;
  /// grad_scale of a microbatch with `counted` labels that count: d(loss of the step) / d(sum of the
  /// microbatch's token losses).
  double scale_of(double counted) const;

  BatchShape shape_;
  int64_t step_counted_ = 0;  // labels that count in the current step; 0: the source does not know
  std::vector<BatchViews> views_;
  std::vector<Microbatch> microbatches_;
  int loaded_ = 0;  // number of microbatches_ that the last load filled
  BatchViews slot_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<LateUploads> late_;  // null: the stream that computes copies
};

}  // namespace megalith
