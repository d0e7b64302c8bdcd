#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "libcore/data/samples/gpt_dataset.h"
#include "libcore/model/stage.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// Writes sample number `index` of a data set (GptDataset::get, BlendedDataset::get); throws when there is
/// none of that number. Called from several threads at a time.
using SampleReader = std::function<void(int64_t index, const SampleView&)>;

/// The samples of a data set, and what is known of each before it is read. Functions are called from several
/// threads at a time.
struct SampleSource {
  SampleReader read;
  /// Rows that a sample fills, at most seq_length; the reader need not write the others. A micro-batch is as
  /// long as its longest sample. Empty: all of them are full.
  std::function<int64_t(int64_t index)> length = {};
  /// Labels of a sample that count in the loss. Given, the loss of a step is the mean over all of its labels
  /// that count; else the mean over its micro-batches of each one's mean.
  std::function<int64_t(int64_t index)> counted = {};

  SampleSource() = default;
  template <class Read>
  requires std::invocable<const Read&, int64_t, const SampleView&> SampleSource(Read reader)
      : read(std::move(reader)) {}  // NOLINT(google-explicit-constructor): the usual kind
};

/// How one optimizer step's samples are dealt out: Megatron's MegatronPretrainingSampler. Samples go in order
/// of their number, in blocks of micro_batch * data_size, of which each data-parallel rank takes its
/// micro_batch in turn.
struct BatchShape {
  int64_t seq_length = 0;
  int64_t micro_batch = 0;
  int microbatches = 0;  // of this rank, in one step
  int data_rank = 0, data_size = 1;
  int context_rank = 0, context_size = 1;  // of the ranks that share each sample
  int64_t length_step = 1;  // micro-batches that are shorter than seq_length are a multiple of it long
  bool attention_starts = false, position_starts = false;  // which of Microbatch's tensors there are

  int64_t rows() const { return seq_length / context_size; }  // of a sample on this rank
  bool starts() const { return attention_starts || position_starts; }
  int64_t samples() const { return micro_batch * microbatches * data_size; }  // of one step, over all ranks
};

/// One rank's share of one step's samples, in the backend's memory: inputs are a sample's first seq_length
/// tokens, labels its last. A context-parallel rank has the rows that
/// context_rows() says.
class Batch {
 public:
  /// Makes its tensors in `arena`, which must outlive it, and takes host_bytes() of the host's memory.
  Batch(Arena& arena, const BatchShape&);
  ~Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) = delete;

  /// Takes the samples of the step that begins when `consumed` samples are done, and has a thread of its own
  /// read those of the step behind it, with a copy of `read`: the next call, for that step and with the same
  /// reader, only copies. What `read` refers to outlives this object. Throws what the reader threw for one of
  /// this step's samples.
  void load(Stream&, const SampleSource& source, int64_t consumed);
  /// The same without reading ahead, and without touching what is read ahead: for evaluation.
  void load_now(Stream&, const SampleSource& source, int64_t consumed);
  /// Each with grad_scale = 1 / (microbatches over all ranks * tokens of its samples that count): loss and
  /// gradient of the step are the mean over its microbatches of each one's mean, as in Megatron. Where the
  /// source says how many count, 1 / (those of the whole step), as in transformers.
  std::span<const Microbatch> microbatches() const { return microbatches_; }
  const BatchShape& shape() const { return shape_; }

  static size_t bytes(const BatchShape&);
  /// Of the host's memory, in which samples are read before they are copied; taken once.
  static size_t host_bytes(const BatchShape&);

 private:
  struct Place {
    View tokens, labels, loss_mask, samples;
    View starts;  // empty without starts
  };
  class Staging;
  struct Host;
  static std::vector<Place> make_places(Arena&, const BatchShape&, int microbatches);
  void read_ahead(const SampleSource&, int64_t consumed);
  void put(Stream&, const Staging&, int part, int microbatch);
  /// d(loss of the step)/d(sum of a microbatch's token losses), `counted` of whose labels count.
  double scale_of(double counted) const;

  BatchShape shape_;
  int64_t step_counted_ = 0;  // labels that count in the present step; 0: the source does not say
  std::vector<Place> places_;
  std::vector<Microbatch> microbatches_;
  std::unique_ptr<Host> host_;
};

}  // namespace megalith
