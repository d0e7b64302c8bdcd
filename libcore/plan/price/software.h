#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// How the training program computes attention. The first two keep the [s, s] scores in memory.
enum class AttentionKernel { kTorch, kFusedSoftmax, kFlash1, kFlash2, kFused };

inline bool keeps_scores(AttentionKernel kernel) {
  return kernel == AttentionKernel::kTorch || kernel == AttentionKernel::kFusedSoftmax;
}

/// The precision of the layers' matrix products.
enum class Precision { kFloat32, kHalf, kFp8, kMxfp8, kNvfp4 };

enum class Schedule { kOneForwardOneBackward, kZeroBubble, kZeroBubbleV, kVHalf, kVMin, kDualPipe };

/// What the training program does and omits, as far as time and memory depend on it.
struct Software {
  std::string code_base = "megatron";  // CodeBase::name
  AttentionKernel attention = AttentionKernel::kFused;
  Schedule schedule = Schedule::kOneForwardOneBackward;
  /// Whether each of these is a single kernel; false: PyTorch's operators.
  bool fused_norm = true, fused_rope = true, fused_activation = true;
  bool cast_norm = false;  // a fused norm between casts: as slow as PyTorch's operators, but it keeps no more
                           // memory than fused_norm
  bool compiled = false;   // torch.compile: element-wise work is fused, so fewer kernels are launched
  bool cuda_graphs = false;        // steps are replayed, so that the host starts no kernels one by one
  bool overlap_gradients = true;   // gradients are reduced during the last backward pass
  bool overlap_parameters = true;  // parameters are gathered during the first forward pass
  bool overlap_tensor = false;     // tensor-parallel collectives run in pieces during matrix products
  bool overlap_exchange = false;   // tokens travel to experts during another microbatch's work
  bool narrow_dispatch = false;    // tokens travel to experts in 8 bits, and back in 16
  bool overlap_messages = true;    // pipeline messages of an interleaved schedule overlap with work
  /// Whether each tensor rank sends a part of a message, and the next stage gathers the parts.
  bool scatters_messages = false;
  bool keeps_softmax_input = false;  // the fused softmax keeps the scores in addition to its result
  bool fused_cross_entropy = false;  // only one copy of the logits is kept
  /// Whether sequence parallelism gathers a layer's inputs once and keeps them for both passes.
  bool keeps_gathered = false;
  bool torch_loss = false;       // PyTorch's own cross entropy on fp32 logits
  bool gathered_logits = false;  // each tensor rank holds the logits of all ranks
  int head_rows = 0;             // rows of the logits in memory at one time; 0: all of them
  bool adam_8bit = false;
  double first_moment_bytes = 4;  // bytes of one of Adam's first moments, unless adam_8bit
  bool fused_gradients = true;    // matrix products themselves add to the gradient buffer
  bool reduces_whole = false;  // gradients are summed on all ranks, although the optimizer needs only a part
  double gradient_bytes = 4;   // bytes of one gradient in the main buffer
  double reduced_bytes = 0;    // bytes of one gradient in transit; 0: as in the buffer
  double bucket_bytes = 0;     // bytes of the buffers in which gradients are exchanged
  double step_copy_bytes = 0;  // bytes per parameter of fp32 copies of gradients in the optimizer's step
  /// Whether FSDP with a pipeline gathers parameters once a step and keeps them, with whole gradients.
  bool pipelines_gather_once = false;
  bool expandable_segments = false;  // the option of PyTorch's allocator: almost no fragmentation
};

}  // namespace megalith
