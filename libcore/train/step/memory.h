#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "libcore/model/measure.h"
#include "libcore/train/step/executor.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// Scratch memory of a GPU's streams, in bytes: of the compute stream, of the stream of gradient buckets, and
/// of the stream of exchanges in pieces. 0: the stream's work needs none.
struct StreamScratch {
  size_t compute = 0, buckets = 0, pieces = 0;
};

/// What one rank of a run allocates, in bytes, and the sizes with which the executor is built. There is no
/// separate formula: the sizes come from running the real Stage on the dry backend, placing the real
/// parameters and counting the real plan. The trainer allocates arenas of these sizes, and the planner reads
/// the same figures.
struct RunMemory {
  size_t weights = 0;           // values, and constants such as rotary angles
  size_t grads = 0;             // fp32; with ZeRO-2 two buckets, a tied table, and this rank's shard
  size_t optimizer = 0;         // this rank's moments, and fp32 masters of a 16-bit model
  ExecutorSize executor;        // the activations need tape * tapes bytes
  size_t links = 0;             // pipeline boundaries and messages in transit
  size_t scratch = 0;           // temporary memory of layers, in training or in evaluation
  size_t training_scratch = 0;  // scratch memory of training, without that of evaluation
  size_t batch = 0;             // samples of one step
  size_t host = 0;              // host memory into which this step's and the next step's samples are read
  size_t scalars = 0;           // the step's scalars (StepScalar)
  size_t workspace = 0;         // scratch memory of a GPU's kernels, and of sums in rank order; 0 on the CPU
  StreamScratch streams = {};   // the same, by stream
  size_t nccl = 0;              // NCCL's buffers (nccl_bytes); 0 on the CPU and for one rank
  size_t graphs = 0;            // of the passes that a GPU repeats (graph_bytes); 0 on the CPU
  size_t staging = 0;           // host memory through which copies to a GPU pass; 0 on the CPU
  size_t save_copy = 0;         // host memory for a copy of what this rank saves (RunShape::save_copy)
  size_t tasks = 0;             // RunShape::task_bytes, during an evaluation
  int64_t parameters = 0;       // number of parameters on this rank; tied ones count once
  Cost forward, backward;       // of one microbatch in all chunks of this rank

  size_t activations() const { return executor.tape * static_cast<size_t>(executor.tapes); }
  size_t total() const {
    return weights + grads + optimizer + activations() + links + scratch + batch + host + scalars +
           workspace + nccl + graphs + staging + save_copy + tasks;
  }
  /// The parts of the total that are in the memory of a GPU and in that of the machine.
  size_t on_device() const { return total() - beside_device(); }
  size_t beside_device() const { return host + staging + save_copy; }
  /// "weights 1.00 GiB, gradients …, total …".
  std::string text() const;
};

/// The memory of the rank at `at`. kUsage when the pipeline cannot be scheduled.
RunMemory run_memory(const RunShape&, const Coord& at = {});
/// The memory of a rank, and of the ranks that hold copies of its parameters (along the data and context
/// axes). They need no entries of their own, because they differ only in what they save.
struct ModelRank {
  Coord at;
  RunMemory memory;
  size_t others_save_copy = 0;  // RunMemory::save_copy of each rank that holds a further copy
};
std::vector<ModelRank> memory_of_model(const RunShape&);

/// Logs the parameters of each rank of the model, as Megatron does.
void log_parameters(const std::vector<ModelRank>&);

}  // namespace megalith
