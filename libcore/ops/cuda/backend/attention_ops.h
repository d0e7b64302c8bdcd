#pragma once

#include "libcore/ops/attention.h"
#include "libcore/ops/cuda/queue.h"
#include "libcore/ops/prefix.h"

/// The ops over packed queries, keys and values. Each function enqueues the kernels of its op on the queue,
/// whose device must be the calling thread's, and returns. It throws kUsage for heads of more than
/// kWidestHead columns, and kDevice as the launchers do.
namespace megalith::cuda {

void run_on(Queue&, const Rope&);
void run_on(Queue&, const Attention&);
void run_on(Queue&, const AttentionGrad&);
void run_on(Queue&, const CopyKeyValues&);
void run_on(Queue&, const CachedAttention&);
void run_on(Queue&, const PutPrefix&);
void run_on(Queue&, const PrefixGrad&);

/// Attention of some kinds by another library than the kernels here.
class OtherAttention {
 public:
  virtual ~OtherAttention() = default;
  /// Enqueues the op; false if it is not of a kind that the library computes. Throws kDevice.
  virtual bool run(Queue&, const Attention&) = 0;
  virtual bool run(Queue&, const AttentionGrad&) = 0;
};

}  // namespace megalith::cuda
