#pragma once

#include "libcore/model/param_store.h"
#include "libcore/parallel/communicator.h"
#include "libcore/tensor/arena.h"

namespace megalith {

/// The gradients of a rank, one flat fp32 tensor that lies in the ParamStore: a backward pass adds to it, the
/// optimizer reads it. Refers to the store and the communicator, which must outlive it.
class GradBuffer {
 public:
  /// `data`: the ranks that hold the same parameters. kInternal when the store has no gradients.
  GradBuffer(const ParamStore&, Communicator& data, Stream&);

  void zero(Stream&);
  /// Sums over the data-parallel ranks.
  void reduce(Stream&);
  /// L2 norm over all parameters, tied ones once; waits for the stream. Summed in fp64 in a fixed order.
  double norm(Stream&);
  View flat() const { return grads_; }  // [elements] f32

 private:
  View grads_;
  Communicator& data_;
  Arena arena_;
  View sum_;  // [1] f64
};

/// The factor by which Megatron and torch's clip_grad_norm_ scale a gradient of this norm: max_norm / (norm +
/// 1e-6) where that is below 1. max_norm 0: never clipped.
double clip_factor(double norm, double max_norm);

}  // namespace megalith
