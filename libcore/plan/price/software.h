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
       fused_activation = true;  // one kernel each; false: PyTorch's operators
  bool cast_norm = false;  // a fused norm between casts: as slow as PyTorch's operators, but keeps no more
                           // memory than fused_norm alone
  bool compiled = false;   // torch.compile: fuses element-wise work, fewer launches
  bool overlap_gradients = true;     // reduced during the last backward pass
  bool overlap_parameters = true;    // gathered during the first forward pass
  bool overlap_tensor = false;       // tensor-parallel collectives run in pieces during matrix products
  bool overlap_exchange = false;     // tokens travel to experts during another microbatch's work
  bool overlap_messages = true;      // pipeline messages of an interleaved schedule overlap with work
  bool scatters_messages = false;    // tensor ranks send a part each of a message; the next stage gathers it
  bool keeps_softmax_input = false;  // the fused softmax keeps the scores in addition to its result
  bool fused_cross_entropy = false;  // keeps only one copy of the logits
  bool keeps_gathered =
      false;  // sequence parallelism gathers a layer's inputs once and keeps them for both passes
  bool torch_loss = false;       // PyTorch's own cross entropy on fp32 logits
  bool gathered_logits = false;  // each tensor rank holds the logits of all ranks
  int head_rows = 0;             // rows of the logits in memory at one time; 0: all of them
  bool adam_8bit = false;
  bool fused_gradients = true;  // matrix products themselves add to the gradient buffer
  bool reduces_whole = false;   // gradients are summed on all ranks, although the optimizer needs only a part
  double gradient_bytes = 4;    // per gradient in the main buffer
  double reduced_bytes = 0;     // per gradient in transit; 0: as in the buffer
  double bucket_bytes = 0;      // buffers of the gradients' exchange
  double step_copy_bytes = 0;   // per parameter: fp32 gradients made in the optimizer's step
  bool expandable_segments = false;  // option of PyTorch's allocator: almost no fragmentation
};

}  // namespace megalith
