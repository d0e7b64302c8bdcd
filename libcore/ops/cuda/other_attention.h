#pragma once

#include "libcore/ops/attention.h"
#include "libcore/ops/cuda/queue.h"

namespace megalith::cuda {

/// Attention of some kinds by another library than the kernels here.
class OtherAttention {
 public:
  virtual ~OtherAttention() = default;
  /// Enqueues the op; false if it is not of a kind that the library computes. Throws kDevice.
  virtual bool run(Queue&, const Attention&) = 0;
  virtual bool run(Queue&, const AttentionGrad&) = 0;
};

}  // namespace megalith::cuda
