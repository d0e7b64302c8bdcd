#pragma once

#include <vector>

#include "libcore/model/ctx.h"
#include "libcore/model/param_store.h"
#include "libcore/parallel/groups.h"
#include "libcore/tensor/span_log.h"
#include "libcore/train/step/shards.h"

namespace megalith {

/// The gradients of a rank. Backward passes add to the gradient views that the ParamStore gave the
/// parameters. This object sums them over the ranks that share a parameter, and gives this rank's part to the
/// optimizer.
///
/// A bucket is reduced over the data-parallel ranks on a separate stream as soon as its last unit is done.
/// Without sharding (all-reduce) and with ZeRO-1 (reduce-scatter), this happens in the last backward pass of
/// a step. With ZeRO-2 it happens in every backward pass: the sum is added to this rank's fp32 shard, and the
/// next bucket but one reuses the memory. A table tied over two pipeline stages has its own bucket, which is
/// reduced at the end of the step. Refers to table, store and groups, which must outlive it.
class GradBuffer final : public GradSink {
 public:
  /// kInternal when the store has no gradients.
  GradBuffer(const ParamTable&, const ParamStore&, Groups&, const Shards&, Sharding, Backend&);

  /// Sets all gradients to zero. Call before a step.
  void zero(Stream& compute);
  /// Call before each backward pass. `last`: it is the last one of the step for this chunk.
  void begin_backward(bool last);
  void head_begins(Stream& compute) override;
  void unit_done(Stream& compute, int unit) override;
  /// Call after the last backward pass: makes `compute` wait until this rank's sums are complete.
  void finish(Stream& compute);

  /// The summed gradient of the elements that this rank owns, [range.elements()] f32.
  View of(const OwnRange&) const;
  /// Bytes that the buffer has allocated.
  size_t used() const { return arena_.peak(); }
  /// Adds this rank's share of the gradient's sum of squares to out [1] f64. The sum over the world counts
  /// every parameter once: a tied parameter, one that all ranks of a tensor group hold, and one with
  /// data-parallel copies are each counted on one rank only.
  void add_squares(Stream&, View out) const;

  /// The stream on which buckets are reduced.
  Stream& queue() { return queue_; }
  /// The times of the work on it while recording was on.
  SpanLog& spans() { return spans_; }

  /// Bytes that a buffer will allocate.
  static size_t bytes(const Shards&, Sharding);

 private:
  void find_squares(const ParamTable&);
  void sum_over_tensor_ranks(Stream&, int unit) const;
  void reduce(Stream& compute, const Bucket&);
  void reduce_on_queue(const Bucket&);
  void expect_all_units();
  bool reduces_now() const { return last_ || sharding_ == Sharding::kGradients; }

  const ParamTable& table_;
  const ParamStore& store_;
  Groups& groups_;
  const Shards& shards_;
  Sharding sharding_;
  SpanLog spans_;
  Stream queue_;
  Arena arena_;
  View shard_;                      // [shards.elements()] f32 with ZeRO-2, otherwise empty
  std::vector<int> units_missing_;  // for each bucket, number of units whose gradients are not complete
  /// With ZeRO-2: the event after which the previous bucket's window may be overwritten, since it has been
  /// added to the shard.
  Event window_free_;
  std::vector<OwnRange> counted_;  // elements that this rank counts in the norm
  bool last_ = false;
  Drain drain_;  // waits for the queue before the memory above is freed
};

}  // namespace megalith
