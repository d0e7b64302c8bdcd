#pragma once

#include <cstdint>
#include <string>

namespace megalith {

/// How the training program computes attention. The first two keep the [s, s] scores in memory.
enum class AttentionKernel { kTorch, kFusedSoftmax, kFlash1, kFlash2, kFused };

/// In what the layers' matrix products are computed.
enum class Precision { kFloat32, kHalf, kFp8, kMxfp8, kNvfp4 };

enum class Schedule { kOneForwardOneBackward, kZeroBubble, kZeroBubbleV, kVHalf, kVMin };

/// What the program that trains does or leaves, as far as time and memory depend on it.
struct Software {
  AttentionKernel attention = AttentionKernel::kFused;
  Schedule schedule = Schedule::kOneForwardOneBackward;
  bool fused_norm = true, fused_rope = true, fused_activation = true;  // one kernel each; else PyTorch's own
  bool cast_norm =
      false;  // a norm's kernel between casts: as slow as PyTorch's operators, keeping nothing more
  bool compiled = false;             // torch.compile: element-wise work joined, fewer launches
  bool overlap_gradients = true;     // reduced while the last backward pass runs
  bool overlap_parameters = true;    // gathered while the first forward pass runs
  bool overlap_tensor = false;       // tensor-parallel collectives cut up and done beside matrix products
  bool overlap_exchange = false;     // tokens on their way to experts beside another microbatch's work
  bool overlap_messages = true;      // pipeline messages of an interleaved schedule
  bool scatters_messages = false;    // each tensor rank sends its part, and the next stage's gather the whole
  bool keeps_softmax_input = false;  // the joined softmax keeps the scores beside their probabilities
  bool fused_cross_entropy = false;  // one copy of the logits
  bool keeps_gathered =
      false;  // sequence parallelism gathers a layer's inputs once and keeps them for both passes
  bool torch_loss = false;       // PyTorch's own cross entropy on fp32 logits
  bool gathered_logits = false;  // each tensor rank holds the logits of all
  int head_rows = 0;             // rows of the logits that stand at a time; 0: all of them
  bool adam_8bit = false;
  bool fused_gradients = true;  // matrix products add to the gradient buffer themselves
  bool reduces_whole = false;   // gradients are summed on all ranks, though the optimizer needs a part
  double gradient_bytes = 4;    // of one gradient in the main buffer
  double reduced_bytes = 0;     // of one gradient on its way; 0: as in the buffer
  double bucket_bytes = 0;      // buffers of the exchange
  double step_copy_bytes = 0;   // of fp32 gradients that an optimizer makes while it steps, a local parameter
  bool expandable_segments = false;  // the allocator's: nearly no fragmentation
};

}  // namespace megalith
