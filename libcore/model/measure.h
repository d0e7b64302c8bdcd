#pragma once

#include <map>
#include <string>

#include "libcore/model/stage.h"

namespace megalith {

struct MeasureInput {
  ModelConfig model;
  Layers layers;
  TensorSplit split = {};
  int context_rank = 0, context_size = 1;  // of the context group, which divides the sequence
  RecomputePlan recompute = {};
  DType dtype = DType::kF32;
  int64_t micro_batch = 1;
  TuningPlan tuning = {};
  bool on_gpu = false;  // products have their epilogues
};

/// What one stage needs on one rank: bytes of memory, and the cost of one microbatch.
struct StageCost {
  size_t tape = 0;                // saved activations of one microbatch
  size_t scratch = 0;             // peak over the forward and backward passes
  size_t evaluation_scratch = 0;  // peak of a forward pass without training
  size_t workspace = 0;           // scratch memory of CUDA's kernels (cuda_workspace)
  size_t values = 0, grads = 0;
  size_t tensor_bytes = 0;   // sizes of the whole tensors that the tensor group reduces, gathers and scatters
  size_t context_bytes = 0;  // sizes of the whole tensors that the context group gathers and sums
  int64_t exchanges = 0;     // calls of both groups in one microbatch
  int64_t summed = 0;        // gradients that the tensor group sums in a step's last microbatch
  int64_t parameters = 0;    // on this rank; a tied parameter counts once
  Cost forward, backward;    // all ops of one microbatch
  std::map<std::string, Trace::Entry> ops;  // of both passes, by name
};

/// Runs the real Stage forward and backward on the dry backend with counting arenas, so that the figures are
/// those of a real run and need no formulas of their own. Takes almost no memory or time: no tensor is
/// touched.
StageCost measure(const MeasureInput&);
/// The same on a dry backend of the caller, which can then be asked what else the ops of the stage need.
StageCost measure(const MeasureInput&, Backend& dry);

}  // namespace megalith
