#include "libcore/train/step/memory_limits.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"

namespace megalith {

MemoryLeft ask_memory(RunShape& run, int ranks_here, const GpusOfRun& gpus) {
  MemoryLeft left{.machine = available_memory(), .ranks_here = ranks_here, .sharers = gpus.sharers};
  if (gpus.memory.empty()) return left;
  size_t smallest = gpus.memory.front().all;
  for (const cuda::DeviceMemory& one : gpus.memory) {
    smallest = std::min(smallest, one.all);
    left.devices.push_back(one.left / static_cast<size_t>(gpus.sharers));
  }
  run.vocabulary = gpu_vocabulary(smallest);
  run.nccl = gpus.sharers > 1 ? NcclSizes{.channels = 0} : nccl_sizes_here();
  return left;
}

namespace {

/// Bytes of the machine's memory that a rank needs.
size_t on_machine(const RunShape& run, const RunMemory& memory) {
  return on_gpu(run) ? memory.beside_device() : memory.total();
}

size_t of_device(const RunShape& run, const RunMemory& memory) {
  return on_gpu(run) ? memory.on_device() : memory.total();
}

size_t bytes_of_run(const RunShape& run, const std::vector<ModelRank>& ranks) {
  size_t sum = 0;
  const auto others = static_cast<size_t>(run.parallel.copies() - 1);
  for (const ModelRank& rank : ranks) {
    const size_t bytes = on_machine(run, rank.memory);
    sum += bytes + others * (bytes - rank.memory.save_copy + rank.others_save_copy);
  }
  return sum;
}

/// Bytes that the run's ranks on this machine need. With several machines, counts rank 0's memory for each
/// rank on the first machine, since it is only known that rank 0 is there.
size_t bytes_here(const RunShape& run, const std::vector<ModelRank>& ranks, int ranks_here) {
  if (ranks_here < run.parallel.world)
    return on_machine(run, ranks.front().memory) * static_cast<size_t>(ranks_here);
  return bytes_of_run(run, ranks);
}

bool fits_machine(const RunShape& run, const std::vector<ModelRank>& ranks, const MemoryLeft& left) {
  return !left.machine || bytes_here(run, ranks, left.ranks_here) <= *left.machine;
}

/// The first rank that needs more than this much of its device; null if none does.
const ModelRank* beyond(const RunShape& run, const std::vector<ModelRank>& ranks, double bytes) {
  const auto found = std::find_if(ranks.begin(), ranks.end(), [&](const ModelRank& rank) {
    return static_cast<double>(of_device(run, rank.memory)) > bytes;
  });
  return found == ranks.end() ? nullptr : &*found;
}

const ModelRank* beyond_limit(const RunShape& run, const std::vector<ModelRank>& ranks) {
  return run.train.device_memory == 0 ? nullptr : beyond(run, ranks, run.train.device_memory);
}

/// A rank whose GPU has less left than the rank needs.
struct ShortOfMemory {
  int rank;
  const RunMemory* needs;
  size_t left;
};

/// The rank that lacks most. Data and context ranks need as much as the model's rank whose parameters they
/// hold.
std::optional<ShortOfMemory> beyond_device(const RunShape& run, const std::vector<ModelRank>& ranks,
                                           const MemoryLeft& left) {
  if (left.devices.empty()) return {};
  const Topology topology(run.parallel, run.parallel.world);
  std::optional<ShortOfMemory> worst;
  size_t most = 0;
  const auto look = [&](int rank, const RunMemory& needs, size_t has) {
    if (needs.on_device() <= has + most) return;
    most = needs.on_device() - has;
    worst = {rank, &needs, has};
  };
  if (left.devices.size() == 1)
    for (const ModelRank& one : ranks) look(topology.rank(one.at), one.memory, left.devices.front());
  else
    for (int rank = 0; rank < topology.world(); ++rank) {
      const Coord at = topology.coord(rank);
      const auto place = static_cast<size_t>(int64_t{at.tensor} * run.parallel.pipeline + at.pipeline);
      look(rank, ranks[place].memory, left.devices[static_cast<size_t>(rank)]);
    }
  return worst;
}

bool fits(const RunShape& run, const MemoryLeft& left) {
  const std::vector<ModelRank> ranks = memory_of_model(run);
  return fits_machine(run, ranks, left) && !beyond_limit(run, ranks) && !beyond_device(run, ranks, left);
}

std::string in_bytes(size_t n) {
  return format_bytes(static_cast<double>(n));
}

/// "its device has 5.00 GB left"
std::string left_on_device(const RunShape& run, const ShortOfMemory& lacking, int sharers) {
  const std::string bytes = in_bytes(lacking.left);
  if (run.parallel.world == 1) return concat("the device has ", bytes, " left");
  if (sharers > 1)
    return concat("the device, which ", sharers, " ranks share, has ", bytes, " left for each");
  return concat("its device has ", bytes, " left");
}

/// The end of a message about missing memory: what to do.
std::string advice(const RunShape& run, const MemoryLeft& left) {
  const std::string change = least_change(run, [&](const RunShape& other) { return fits(other, left); });
  if (!change.empty()) return concat("the least change that fits: ", change);
  const RunMemory memory = run_memory(run);
  return concat(
      "no smaller --micro-batch-size",
      run.parallel.copies() > 1 ? ", recomputation or sharding of the optimizer" : " or recomputation",
      " makes the run fit: weights, gradients and optimizer alone take ",
      in_bytes(memory.weights + memory.grads + memory.optimizer), run.parallel.world > 1 ? " a rank" : "",
      "; take a smaller model",
      left.sharers > 1         ? ", or fewer ranks on the device"
      : run.parallel.world > 1 ? ", or more ranks"
                               : "");
}

void log_memory(const RunShape& run, const std::vector<ModelRank>& ranks, const MemoryLeft& left) {
  const std::string first = ranks.front().memory.text();
  const size_t here = bytes_here(run, ranks, left.ranks_here);
  const std::string data =
      left.data == 0 ? std::string()
                     : concat("; data (order of samples, tokens of texts and records) ", in_bytes(left.data),
                              "; in all ", in_bytes(here + left.data), " of this machine's memory");
  if (run.parallel.world == 1)
    log("memory known before the run: ", first, data);
  else
    log("memory known before the run: rank 0: ", first, "; all ", left.ranks_here, " ranks",
        left.ranks_here < run.parallel.world ? " of this machine: " : ": ", in_bytes(here), data);
}

void require_machine_memory(const RunShape& run, const std::vector<ModelRank>& ranks,
                            const MemoryLeft& left) {
  if (fits_machine(run, ranks, left)) return;
  const std::string first = ranks.front().memory.text();
  fail(ErrorKind::kUsage, "the run needs ", in_bytes(bytes_here(run, ranks, left.ranks_here)), " of memory",
       on_gpu(run) ? " beside that of the GPU" : "", " (",
       run.parallel.world == 1 ? first : concat(left.ranks_here, " ranks, the first one ", first),
       "), this machine has ", in_bytes(*left.machine), " left; ", advice(run, left));
}

}  // namespace

size_t machine_memory(const RunShape& run, int ranks_here) {
  return bytes_here(run, memory_of_model(run), ranks_here);
}

void require_memory(const RunShape& run, const std::vector<ModelRank>& ranks, const MemoryLeft& left) {
  log_memory(run, ranks, left);
  require_machine_memory(run, ranks, left);
  require_device_memory(run, ranks, left);
  if (const auto lacking = beyond_device(run, ranks, left))
    fail(ErrorKind::kUsage, run.parallel.world > 1 ? concat("rank ", lacking->rank) : "the run", " needs ",
         in_bytes(lacking->needs->on_device()), " of device memory (", lacking->needs->text(), "), ",
         left_on_device(run, *lacking, left.sharers), "; ", advice(run, left));
}

void require_device_memory(const RunShape& run, const std::vector<ModelRank>& ranks, const MemoryLeft& left) {
  const ModelRank* const rank = beyond_limit(run, ranks);
  if (rank == nullptr) return;
  fail(ErrorKind::kUsage, "--device-memory-gb ", run.train.device_memory / 1e9, ": (tensor, pipeline) rank (",
       rank->at.tensor, ", ", rank->at.pipeline, ") needs ",
       format_fixed(static_cast<double>(of_device(run, rank->memory)) / 1e9, 3), " GB (", rank->memory.text(),
       "); ", advice(run, left), ", or raise the limit");
}

namespace {

/// Options of a command line, and the run with them.
struct Change {
  RunShape run;
  std::string options = {};
  Change with(const std::string& more) const {
    return {run, options.empty() ? more : concat(options, ' ', more)};
  }
};
using Fits = std::function<bool(const RunShape&)>;
using Found = std::optional<Change>;

bool is_possible(const Change& change, const Fits& fits) {
  try {
    return fits(change.run);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kUsage) throw;
    return false;  // a pipeline that cannot be scheduled so
  }
}

Found with_or_without_copy(const Change& from, const Fits& fits) {
  if (is_possible(from, fits)) return from;
  if (from.run.save_copy == SaveCopy::kNone) return {};
  Change without = from.with("--no-async-save");
  without.run.save_copy = SaveCopy::kNone;
  return is_possible(without, fits) ? Found(without) : Found();
}

/// A divisor of the micro-batch divides whatever the micro-batch divides.
Found with_micro_batch(const Change& from, const Fits& fits) {
  const TrainConfig& train = from.run.train;
  for (int micro = train.micro_batch; micro > 0; --micro) {
    if (train.micro_batch % micro != 0) continue;
    const int times = train.micro_batch / micro;
    const std::string batch = train.accumulation
                                  ? concat(" --gradient-accumulation-steps ", *train.accumulation * times)
                                  : concat(" --global-batch-size ", train.global_batch);
    Change change = times == 1 ? from : from.with(concat("--micro-batch-size ", micro, batch));
    change.run.train.micro_batch = micro;
    if (Found found = with_or_without_copy(change, fits)) return found;
  }
  return {};
}

Change with_recomputed_layers(const Change& from, int layers) {
  Change change = from.with(
      concat("--recompute-granularity full --recompute-method block --recompute-num-layers ", layers));
  change.run.train.recompute = Recompute::kFull;
  change.run.train.recompute_method = "block";
  change.run.train.recompute_layers = layers;
  return change;
}

/// The largest number of layers in a chunk.
int layers_of_chunk(const RunShape& run) {
  int most = 0;
  for (int stage = 0; stage < run.parallel.pipeline; ++stage)
    for (int chunk = 0; chunk < pipeline_chunks(run); ++chunk)
      most = std::max(most, chunk_layers(run, {.pipeline = stage}, chunk).count);
  return most;
}

/// The more layers are recomputed, the less memory they need, so bisection finds the fewest.
Found with_fewest_recomputed_layers(const Change& from, const Fits& fits) {
  std::vector<int> layers(static_cast<size_t>(layers_of_chunk(from.run)));
  std::iota(layers.begin(), layers.end(), 1);
  const auto fewest = std::partition_point(layers.begin(), layers.end(), [&](int n) {
    return !with_micro_batch(with_recomputed_layers(from, n), fits);
  });
  if (fewest == layers.end()) return {};
  return with_micro_batch(with_recomputed_layers(from, *fewest), fits);
}

Found with_recomputation(const Change& from, const Fits& fits) {
  if (Found found = with_micro_batch(from, fits)) return found;
  if (from.run.train.recompute == Recompute::kNone) {
    Change selective = from.with("--recompute-granularity selective");
    selective.run.train.recompute = Recompute::kSelective;
    if (Found found = with_micro_batch(selective, fits)) return found;
  }
  if (from.run.train.recompute == Recompute::kFull) return {};
  return with_fewest_recomputed_layers(from, fits);
}

Change sharded(const Change& from, Sharding sharding, const char* options) {
  Change change = from.with(options);
  change.run.parallel.sharding = sharding;
  change.run.parallel.distributed_optimizer = true;
  return change;
}

Found with_sharding(const Change& from, const Fits& fits) {
  if (Found found = with_recomputation(from, fits)) return found;
  const ParallelConfig& parallel = from.run.parallel;
  if (parallel.copies() == 1) return {};
  if (parallel.sharding == Sharding::kNone)
    if (Found found =
            with_recomputation(sharded(from, Sharding::kOptimizer, "--use-distributed-optimizer"), fits))
      return found;
  if (parallel.pipeline > 1 || parallel.sharding == Sharding::kGradients) return {};
  return with_recomputation(sharded(from, Sharding::kGradients, "--sharding stage2"), fits);
}

}  // namespace

std::string least_change(const RunShape& run, const std::function<bool(const RunShape&)>& fits) {
  constexpr char kNoGraphs[] = "--cuda-graph-impl none";
  Change without{run};
  if (on_gpu(run)) without.run.train.cuda_graphs = "none";
  const Found found = with_sharding(without, fits);
  if (!found) return {};
  Change with = *found;
  with.run.train.cuda_graphs = run.train.cuda_graphs;
  if (is_possible(with, fits)) return found->options;
  return found->options.empty() ? kNoGraphs : concat(kNoGraphs, ' ', found->options);
}

SaveCopy wanted_save_copy(const CheckpointConfig& config) {
  if (config.save.empty() || !traits_of(config.format).native || !config.async_save.value_or(true))
    return SaveCopy::kNone;
  return config.save_optim ? SaveCopy::kAll : SaveCopy::kParameters;
}

SaveCopyChoice chosen_save_copy(const CheckpointConfig& config, RunShape run, const MemoryLeft& left) {
  run.save_copy = wanted_save_copy(config);
  std::vector<ModelRank> ranks = memory_of_model(run);
  if (run.save_copy == SaveCopy::kNone || config.async_save || fits_machine(run, ranks, left))
    return {run.save_copy, std::move(ranks)};
  log("saves wait for the disk: this machine's memory cannot hold a copy of what they write");
  run.save_copy = SaveCopy::kNone;
  return {run.save_copy, memory_of_model(run)};
}

}  // namespace megalith
