#pragma once

#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/backend/cuda_workspaces.h"
#include "libcore/ops/cuda/cudnn/graph.h"

namespace megalith::cuda::cudnn {

/// Attention of a kind by cuDNN, over packed queries, keys and values as they lie in memory. To cuDNN each
/// group of heads is a sample of the batch with r query heads and one key and value head, since the query
/// heads of different groups lie at no constant distance.
class Sdpa {
 public:
  /// Makes plans for the device of the handle. Throws kDevice with cuDNN's words, or if they need more
  /// scratch memory than SdpaSlice says.
  Sdpa(const Library&, Handle, const AttentionKind&);

  /// Enqueue on the handle's stream. `workspace`: device memory, as much as workspace_of() the op.
  void run(const Attention&, void* workspace) const;
  void run(const AttentionGrad&, void* workspace) const;

 private:
  /// The numbers of tensors in memory.
  enum Id : int64_t {
    kQ = 1,
    kK,
    kV,
    kOut,
    kLse,
    kScale,
    kMinusInfinity,
    kOne,
    kDout,
    kDq,
    kDk,
    kDv,
    kDelta
  };
  struct Forms;
  void describe_forward(const Forms&);
  void describe_backward(const Forms&);
  static RawDescriptor masked(Graph&, const Forms&, RawDescriptor scores);

  AttentionKind kind_;
  SdpaSlice slice_;  // of the gradient
  Graph forward_, backward_;
};

}  // namespace megalith::cuda::cudnn
