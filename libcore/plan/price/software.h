#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// How the training program computes attention. The first two keep the [s, s] scores in memory.
enum class AttentionKernel { kTorch, kFusedSoftmax, kFlash1, kFlash2, kFused };

/// The precision of the layers' matrix products.
enum class Precision { kFloat32, kHalf, kFp8, kMxfp8, kNvfp4 };

enum class Schedule { kOneForwardOneBackward, kZeroBubble, kZeroBubbleV, kVHalf, kVMin };

/// What the training program does and omits, as far as time and memory depend on it.
struct Software {
  AttentionKernel attention = AttentionKernel::kFused;
  Schedule schedule = Schedule::kOneForwardOneBackward;
  bool fused_norm = true, fused_rope = true,
       fused_activation = true;      // one kernel each, or PyTorch's own
  bool cast_norm = false;            // a norm's kernel between casts: as slow as PyTorch's operators, but
                                     // keeps no more memory
  bool compiled = false;             // torch.compile: element-wise work joined, fewer launches
  bool overlap_gradients = true;     // reduced during the last backward pass
  bool overlap_parameters = true;    // gathered during the first forward pass
  bool overlap_tensor = false;       // tensor-parallel collectives run in pieces during matrix products
  bool overlap_exchange = false;     // tokens travel to experts during another microbatch's work
  bool overlap_messages = true;      // pipeline messages of an interleaved schedule
  bool scatters_messages = false;    // tensor ranks send parts, and the next stage's gather the whole
  bool keeps_softmax_input = false;  // the joined softmax keeps the scores in addition to their probabilities
  bool fused_cross_entropy = false;  // one copy of the logits
  bool keeps_gathered =
      false;  // sequence parallelism gathers a layer's inputs once and keeps them for both passes
  bool torch_loss = false;       // PyTorch's own cross entropy on fp32 logits
  bool gathered_logits = false;  // each tensor rank holds the logits of all
  int head_rows = 0;             // rows of the logits in memory at one time; 0: all of them
  bool adam_8bit = false;
  bool fused_gradients = true;  // matrix products themselves add to the gradient buffer
  bool reduces_whole = false;   // gradients are summed on all ranks, although the optimizer needs only a part
  double gradient_bytes = 4;    // per gradient in the main buffer
  double reduced_bytes = 0;     // per gradient in transit; 0: as in the buffer
  double bucket_bytes = 0;      // buffers of the exchange
  double step_copy_bytes = 0;   // of fp32 gradients made in the optimizer's step, per parameter
  bool expandable_segments = false;  // the allocator's: almost no fragmentation
};

}  // namespace megalith
