#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/checkpoint_config.h"
#include "libcore/model/measure.h"
#include "libcore/train/step/executor.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// What one rank of a run allocates, in bytes, and the sizes that the executor is made with. Found by running
/// the real Stage on the dry backend, placing the real parameters and counting the real plan, so that there
/// is no second formula: the trainer allocates these very arenas, the planner reads the same figures.
struct RunMemory {
  size_t weights = 0;           // values, and constants such as rotary angles
  size_t grads = 0;             // fp32; with ZeRO-2 two buckets' and a tied table's, and this rank's shard
  size_t optimizer = 0;         // this rank's moments, and fp32 masters of a 16-bit model
  ExecutorSize executor;        // tape bytes * tapes are the activations
  size_t links = 0;             // pipeline boundaries and messages on their way
  size_t scratch = 0;           // what layers take and give back, in training or in evaluation
  size_t training_scratch = 0;  // the part of it that training takes
  size_t batch = 0;             // one step's tokens
  size_t host = 0;         // of the host's memory: this step's and the next one's samples as they are read
  size_t scalars = 0;      // StepScalar
  size_t save_copy = 0;    // of the host's memory: of what this rank saves, see RunShape::save_copy
  int64_t parameters = 0;  // on this rank, tied ones once
  Cost forward, backward;  // of one microbatch, all chunks of this rank

  size_t activations() const { return executor.tape * static_cast<size_t>(executor.tapes); }
  size_t total() const {
    return weights + grads + optimizer + activations() + links + scratch + batch + host + scalars + save_copy;
  }
  /// Without what lies in the host's memory.
  size_t on_device() const { return total() - host - save_copy; }
  /// "weights 1.00 GiB, gradients …, total …".
  std::string text() const;
};

/// The memory of the rank at `at`. kUsage when the pipeline cannot be planned so.
RunMemory run_memory(const RunShape&, const Coord& at = {});
/// The memory of every rank that holds other parameters; those of the data and context axes need no entry,
/// because they are alike but for what they save.
struct ModelRank {
  Coord at;
  RunMemory memory;
  size_t others_save_copy = 0;  // RunMemory::save_copy of each copy but the first
};
std::vector<ModelRank> memory_of_model(const RunShape&);

/// Bytes that this process may still take on this machine: what the system has available, and less if a
/// control group (a container) sets a limit. Nothing when the system does not say.
std::optional<size_t> available_memory();

/// The machine of the first rank.
struct MachineMemory {
  std::optional<size_t> available;  // bytes; nothing: not known
  int ranks_here;                   // of the run, on it
};
/// Logs what the run takes; kUsage when the machine has less.
void require_memory(const RunShape&, const std::vector<ModelRank>&, const MachineMemory&);
/// kUsage when a rank takes more of its device than `limit` bytes (TrainConfig::device_memory; 0: no limit).
/// The CPU's device memory is the host's.
void require_device_memory(const std::vector<ModelRank>&, double limit, bool on_host);
/// Logs the parameters of each rank of the model, as Megatron does.
void log_parameters(const std::vector<ModelRank>&);
/// What a save copies where there is room: nothing without --save in our format, or with --no-async-save.
RunShape::SaveCopy wanted_save_copy(const CheckpointConfig&);
/// What it does copy: that, or nothing where, unless --async-save is given, the machine's memory does not
/// hold it. With memory_of_model() of such a run, which the choice had to know.
struct SaveCopyChoice {
  RunShape::SaveCopy copy;
  std::vector<ModelRank> ranks;
};
SaveCopyChoice chosen_save_copy(const CheckpointConfig&, RunShape, const MachineMemory&);

}  // namespace megalith
