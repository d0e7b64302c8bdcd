#pragma once

#include <vector>

#include "libcore/model/ctx.h"
#include "libcore/model/param_store.h"
#include "libcore/parallel/groups.h"
#include "libcore/tensor/span_log.h"
#include "libcore/train/step/shards.h"

namespace megalith {

/// The gradients of a rank. Backward passes add to the views that the ParamStore gave the parameters; here
/// they are summed over the ranks that share a parameter, and this rank's part is passed to the optimizer.
///
/// A bucket is reduced over the data-parallel ranks on a separate stream as soon as its last unit is done: in
/// the step's last backward pass (all-reduce, or reduce-scatter with ZeRO-1), or in every one (ZeRO-2, which
/// adds it to this rank's fp32 shard and lets the next bucket but one reuse its memory). A table tied over
/// two pipeline stages has its own bucket, which is reduced at the end of the step. Refers to table, store
/// and groups, which must outlive it.
class GradBuffer final : public GradSink {
 public:
  /// kInternal when the store has no gradients.
  GradBuffer(const ParamTable&, const ParamStore&, Groups&, const Shards&, Sharding, Backend&);

  /// Call before a step: sets everything to zero.
  void zero(Stream& compute);
  /// Call before each backward pass; `last`: the step's last one for this chunk.
  void begin_backward(bool last);
  void head_begins(Stream& compute) override;
  void unit_done(Stream& compute, int unit) override;
  /// Call after the last backward pass: `compute` waits until this rank's sums are complete.
  void finish(Stream& compute);

  /// The summed gradient of the elements that this rank owns, [range.elements()] f32.
  View of(const OwnRange&) const;
  /// Bytes that the buffer has allocated.
  size_t used() const { return arena_.peak(); }
  /// Adds to out [1] f64 this rank's share of the sum of squares, so that the sum over the world counts every
  /// parameter once: tied parameters, those that the whole tensor group holds, and data-parallel copies are
  /// counted on one rank.
  void add_squares(Stream&, View out) const;

  /// The times at which buckets were reduced while recording was on.
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
  std::vector<int> units_missing_;  // for each bucket, units whose gradients are not complete yet
  /// With ZeRO-2: reached when the previous bucket has been added to the shard, so that its window may be
  /// written.
  Event window_free_;
  std::vector<OwnRange> counted_;  // the elements that this rank counts in the norm
  bool last_ = false;
  Drain drain_;  // waits for the queue before the memory above is freed
};

}  // namespace megalith
