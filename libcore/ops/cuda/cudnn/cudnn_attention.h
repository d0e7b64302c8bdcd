#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "libcore/ops/backend/attention_choice.h"
#include "libcore/ops/cuda/backend/attention_ops.h"
#include "libcore/ops/cuda/cudnn/cudnn_library.h"
#include "libcore/ops/cuda/cudnn/sdpa.h"

namespace megalith::cuda {

/// The kinds of attention that cuDNN computes for a backend, whose device must be the calling thread's.
class CudnnAttention final : public OtherAttention {
 public:
  /// `library` must outlive it. Throws kDevice.
  explicit CudnnAttention(const cudnn::Library& library);
  ~CudnnAttention() override;
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  /// Computes ops of this kind from now on. Throws kDevice if cuDNN has no plan for it, or if this version of
  /// cuDNN is known to compute it wrongly.
  void add(const AttentionKind&);
  void remove(const AttentionKind&);

  bool run(Queue&, const Attention&) override;
  bool run(Queue&, const AttentionGrad&) override;

 private:
  template <class Op>
  bool run_op(Queue&, const Op&);

  const cudnn::Library& library_;
  cudnn::Handle handle_ = nullptr;
  std::mutex mutex_;  // guards the handle's stream, and sdpas_
  std::map<AttentionKind, std::unique_ptr<cudnn::Sdpa>> sdpas_;
};

}  // namespace megalith::cuda
