#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "libcore/config/model_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/config/train_config.h"
#include "libcore/model/measure.h"
#include "libcore/train/batch.h"
#include "libcore/train/executor.h"

namespace megalith {

/// What one rank of a run allocates, in bytes, and the sizes that the executor is made with. Found by running
/// the real Stage on the dry backend and counting the real plan: the trainer allocates these very arenas, the
/// planner reads the same figures.
struct RunMemory {
  size_t weights = 0, grads = 0;
  size_t optimizer =
      0;  // moments, and fp32 masters of a 16-bit model; this rank's part with the distributed optimizer
  ExecutorSize executor;        // tape bytes * tapes are the activations
  size_t links = 0;             // pipeline boundaries
  size_t scratch = 0;           // what layers take and give back, in training or in evaluation
  size_t training_scratch = 0;  // the part of it that training takes
  size_t batch = 0;             // one step's tokens
  int64_t parameters = 0;       // on this rank, tied ones once
  Cost forward, backward;       // of one microbatch, all chunks of this rank

  size_t activations() const { return executor.tape * static_cast<size_t>(executor.tapes); }
  size_t total() const { return weights + grads + optimizer + activations() + links + scratch + batch; }
  /// "weights 1.00 GiB, gradients …, total …".
  std::string text() const;
};

/// The bill of the rank at pipeline place `pipeline` (and tensor rank 0), for configurations that finish()
/// has completed. kUsage when the pipeline cannot be planned so.
RunMemory run_memory(const ModelConfig&, const ParallelConfig&, const TrainConfig&, int pipeline = 0);

/// The parts of a configuration that the trainer and the bill share.
RecomputePlan recompute_plan(const TrainConfig&);
DType model_dtype(const TrainConfig&);
BatchShape batch_shape(const ModelConfig&, const ParallelConfig&, const TrainConfig&, int data_rank = 0);

/// Bytes that this process may still take on this machine: what the system has available, and less if a
/// control group (a container) sets a limit. Nothing when the system does not say.
std::optional<size_t> available_memory();

}  // namespace megalith
