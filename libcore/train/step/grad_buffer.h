#pragma once

#include <vector>

#include "libcore/model/ctx.h"
#include "libcore/model/param_store.h"
#include "libcore/parallel/groups.h"
#include "libcore/tensor/span_log.h"
#include "libcore/train/step/shards.h"

namespace megalith {

/// The gradients of a rank: the backward passes add to the views that the ParamStore gave the parameters;
/// here they are summed over the ranks that share a parameter, and this rank's part is handed to the
/// optimizer.
///
/// A bucket is reduced over the data-parallel ranks on a stream of its own as soon as its last unit is done:
/// in the step's last backward pass (all-reduce, or reduce-scatter with ZeRO-1), or in every one (ZeRO-2,
/// which adds it to this rank's fp32 shard and lets the next bucket but one take its memory). A table tied
/// over two pipeline stages is in a bucket of its own, which waits for the end of the step.
/// Refers to table, store and groups, which must outlive it.
class GradBuffer final : public GradSink {
 public:
  /// kInternal when the store has no gradients.
  GradBuffer(const ParamTable&, const ParamStore&, Groups&, const Shards&, Sharding, Backend&);

  /// Before a step: everything is zero.
  void zero(Stream& compute);
  /// Before each backward pass; `last`: of this step, for the chunk that is walked.
  void begin_backward(bool last);
  void head_begins(Stream& compute) override;
  void unit_done(Stream& compute, int unit) override;
  /// After the last backward pass: `compute` goes on when this rank's sums are complete.
  void finish(Stream& compute);

  /// The summed gradient of elements that this rank owns, [range.elements()] f32.
  View of(const OwnRange&) const;
  /// Bytes that it has allocated.
  size_t used() const { return arena_.peak(); }
  /// Adds to out [1] f64 the sum of squares of what this rank has to count, so that the sum over the world is
  /// that of every parameter once: tied ones, those that the tensor group holds whole, and data-parallel
  /// copies are counted on one rank.
  void add_squares(Stream&, View out) const;

  /// When buckets were reduced, while it is on.
  SpanLog& spans() { return spans_; }

  /// Bytes that it will allocate.
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
  View shard_;                      // [shards.elements()] f32 with ZeRO-2, else empty
  std::vector<int> units_missing_;  // of each bucket, until its gradients are complete
  /// With ZeRO-2: the bucket before the present one is in the shard, so its window may be written.
  Event window_free_;
  std::vector<OwnRange> counted_;  // for the norm
  bool last_ = false;
  Drain drain_;  // before the memory above goes
};

}  // namespace megalith
