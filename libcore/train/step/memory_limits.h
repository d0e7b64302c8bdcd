#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/checkpoint_config.h"
#include "libcore/ops/backend/device_memory.h"
#include "libcore/train/step/layout.h"
#include "libcore/train/step/memory.h"

/// What a run may use of the memory that it needs (memory.h), and what to change when that is not enough.
namespace megalith {

/// What is left of a run's memory, in bytes; nothing: unknown.
struct MemoryLeft {
  std::optional<size_t> machine;      // of the first rank
  int ranks_here = 1;                 // ranks of the run on that machine
  std::optional<size_t> device = {};  // for a rank, of the GPU that has the least left; nothing on the CPU
  int device_rank = 0;                // whose GPU that is
  int sharers = 1;                    // ranks that share it, in equal parts
};
/// The memory of a rank's GPU.
struct RankMemory {
  cuda::DeviceMemory device;
  int rank = 0;
  int sharers = 1;  // ranks of the run that share the GPU
};
/// Asks what is left for a run that has this many ranks on this machine. `gpus`: of all ranks, or of one if
/// only one is known; empty on the CPU. Gives a run on GPUs its gpu_vocabulary().
MemoryLeft ask_memory(RunShape&, int ranks_here, const std::vector<RankMemory>& gpus);

/// Logs what the run needs. Throws kUsage if that is more than what is left on the machine or on a rank's
/// GPU, or than the run's own limit (require_device_memory). The message names the least change that fits.
void require_memory(const RunShape&, const std::vector<ModelRank>&, const MemoryLeft&);
/// Throws kUsage if a rank needs more than TrainConfig::device_memory bytes of its device, which on the CPU
/// is the machine; 0: no limit.
void require_device_memory(const RunShape&, const std::vector<ModelRank>&, const MemoryLeft&);

/// The options that change the run least and make it fit, as on a command line; empty if none do. Tried in
/// this order, each with all before it: no copy for saves, smaller micro-batches, recomputation of attention,
/// of as few whole layers as possible, and sharding. The batch of a step stays.
std::string least_change(const RunShape&, const std::function<bool(const RunShape&)>& fits);

/// What a save should copy if there is enough memory. kNone with --no-async-save, and without --save in our
/// format.
RunShape::SaveCopy wanted_save_copy(const CheckpointConfig&);
/// What a save copies in this run, and the run's memory_of_model(). `copy` is wanted_save_copy(), but kNone
/// if the machine's memory is too small and --async-save is not given.
struct SaveCopyChoice {
  RunShape::SaveCopy copy;
  std::vector<ModelRank> ranks;
};
SaveCopyChoice chosen_save_copy(const CheckpointConfig&, RunShape, const MemoryLeft&);

}  // namespace megalith
