#pragma once

#include "libcore/model/stage.h"

namespace megalith {

struct MeasureInput {
  ModelConfig model;
  Layers layers;
  TensorSplit split = {};
  int context_rank = 0, context_size = 1;  // in the group that shares the sequence
  RecomputePlan recompute = {};
  DType dtype = DType::kF32;
  int64_t micro_batch = 1;
  TuningPlan tuning = {};
};

/// What one stage needs: bytes of memory, and the cost of one microbatch.
struct StageCost {
  size_t tape = 0;                // saved activations of one microbatch
  size_t scratch = 0;             // maximum need of forward and backward
  size_t evaluation_scratch = 0;  // for a forward pass that keeps nothing
  size_t values = 0, grads = 0;
  size_t tensor_bytes = 0;   // reduced, gathered and scattered by the tensor group: whole tensors' bytes
  size_t context_bytes = 0;  // gathered and summed by the context group: whole tensors' bytes
  int64_t parameters = 0;    // on this rank, tied ones once
  Cost forward, backward;    // all ops of one microbatch
};

/// Runs the real Stage forward and backward on the dry backend with counting arenas, so that no second
/// formula could disagree with a run. Takes almost no memory or time: no tensor is touched.
StageCost measure(const MeasureInput&);

}  // namespace megalith
