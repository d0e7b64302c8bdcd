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
  std::optional<size_t> machine;  // of the first rank
  int ranks_here = 1;             // ranks of the run on that machine
  size_t data = 0;                // what the run's data hold there already; not part of `machine`
  /// What is left of each rank's GPU, by rank; or of one GPU alone, which then counts for all ranks. Empty on
  /// the CPU.
  std::vector<size_t> devices = {};
  int sharers = 1;  // ranks that share a GPU, of which each may use an equal part
};
/// The memory of the GPUs of a run.
struct GpusOfRun {
  std::vector<cuda::DeviceMemory> memory;  // by rank, or of one if only one is known; empty on the CPU
  int sharers = 1;                         // ranks that share one GPU
};
/// Asks what is left for a run that has this many ranks on this machine. Gives a run on GPUs its
/// gpu_vocabulary() and its nccl_sizes_here(); ranks that share a GPU do without NCCL.
MemoryLeft ask_memory(RunShape&, int ranks_here, const GpusOfRun&);

/// Bytes that the run's ranks on this machine need of its memory, without their data. `ranks_here`: their
/// number.
size_t machine_memory(const RunShape&, int ranks_here);

/// Logs what the run needs. Throws kUsage if that is more than what is left on the machine, if a rank needs
/// more than what is left on its own GPU, or more than the run's own limit (require_device_memory). The
/// message names the least change that fits, and of several such ranks the one that lacks most.
void require_memory(const RunShape&, const std::vector<ModelRank>&, const MemoryLeft&);
/// Throws kUsage if a rank needs more than TrainConfig::device_memory bytes of its device, which on the CPU
/// is the machine; 0: no limit.
void require_device_memory(const RunShape&, const std::vector<ModelRank>&, const MemoryLeft&);

/// The options that change the run least and make it fit, as on a command line; empty if none do. Tried in
/// this order, each with all before it: no copy for saves, smaller micro-batches, recomputation of attention,
/// of as few whole layers as possible, and sharding. The batch of a step stays. CUDA graphs are left out
/// where they do not fit beside these changes.
std::string least_change(const RunShape&, const std::function<bool(const RunShape&)>& fits);

/// What a save should copy if there is enough memory. kNone with --no-async-save, and without --save in our
/// format.
SaveCopy wanted_save_copy(const CheckpointConfig&);
/// What a save copies in this run, and the run's memory_of_model(). `copy` is wanted_save_copy(), but kNone
/// if the machine's memory is too small and --async-save is not given.
struct SaveCopyChoice {
  SaveCopy copy;
  std::vector<ModelRank> ranks;
};
SaveCopyChoice chosen_save_copy(const CheckpointConfig&, RunShape, const MemoryLeft&);

}  // namespace megalith
