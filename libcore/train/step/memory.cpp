#include "libcore/train/step/memory.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/train/step/optimizer.h"
#include "libcore/train/step/rank_state.h"
#include "libcore/train/step/shards.h"

namespace megalith {
namespace {

// A line "NAME:   NUMBER kB" of /proc/meminfo, in bytes.
std::optional<size_t> meminfo(const std::string& name) {
  std::ifstream in("/proc/meminfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":"))
      if (const auto kib = parse_int(
              trim(std::string_view(line).substr(name.size() + 1, line.find("kB") - name.size() - 1))))
        return static_cast<size_t>(*kib) * 1024;
  return std::nullopt;
}

std::optional<size_t> number_in(const char* path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  const auto value = parse_int(word);  // "max": no limit
  return value ? std::optional<size_t>(static_cast<size_t>(*value)) : std::nullopt;
}

std::optional<size_t> left_in_group(const char* limit_path, const char* used_path) {
  const auto limit = number_in(limit_path), used = number_in(used_path);
  if (!limit || !used) return std::nullopt;
  return *limit > *used ? *limit - *used : 0;
}

}  // namespace

std::optional<size_t> available_memory() {
  std::optional<size_t> min_available = meminfo("MemAvailable");
  for (const auto& left : {left_in_group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                           left_in_group("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                         "/sys/fs/cgroup/memory/memory.usage_in_bytes")})
    if (left) min_available = min_available ? std::min(*min_available, *left) : *left;
  return min_available;
}

namespace {

// Adds a chunk's cost. A rank's chunks use tapes and scratch memory in turn, so the most demanding chunk
// counts.
void add_chunk(RunMemory& memory, const RunShape& run, const Coord& at, int chunk) {
  const StageCost cost = measure({.model = run.model,
                                  .layers = chunk_layers(run, at, chunk),
                                  .split = tensor_split(run, at),
                                  .context_rank = at.context,
                                  .context_size = run.parallel.context,
                                  .recompute = recompute_plan(run.train),
                                  .dtype = model_dtype(run.train),
                                  .micro_batch = run.train.micro_batch,
                                  .tuning = run.tuning});
  memory.executor.tape = std::max(memory.executor.tape, cost.tape);
  memory.training_scratch = std::max(memory.training_scratch, cost.scratch);
  memory.scratch = std::max({memory.scratch, cost.scratch, cost.evaluation_scratch});
  memory.forward += cost.forward;
  memory.backward += cost.backward;
}

/// A rank's parameters and state, placed as in a run, but on the dry backend, which allocates no memory.
struct PlacedState {
  PlacedState(const RunShape& run, const Coord& at)
      : backend(make_dry_backend()),
        stream(*backend),
        params(run.tuning),
        stages(make_stages(run, at, params)),
        store(params, stream, store_options(run)),
        shards(store, run.parallel.sharding, copy_number(run, at), run.parallel.copies()) {}
  std::unique_ptr<Backend> backend;
  Stream stream;
  ParamTable params;
  std::vector<Stage> stages;
  ParamStore store;
  Shards shards;
};

size_t save_copy_bytes(const RunShape& run, const Coord& at, PlacedState& state) {
  if (run.save_copy == RunShape::SaveCopy::kNone) return 0;
  const Optimizer optimizer(state.params, state.store, state.shards, state.stream, {});
  const bool all = run.save_copy == RunShape::SaveCopy::kAll;
  CheckpointWriter writer({}, 0);  // writes nothing; only records the sizes
  put_state(writer, {state.params, all ? &optimizer : nullptr, run, at});
  return writer.bytes();
}

void add_state(RunMemory& memory, const RunShape& run, const Coord& at) {
  PlacedState state(run, at);
  memory.weights = state.store.value_bytes();
  memory.grads = state.store.grad_bytes() + GradBuffer::bytes(state.shards, run.parallel.sharding);
  memory.optimizer = Optimizer::state_bytes(state.shards.elements(), state.store.values().dtype);
  memory.parameters = state.store.parameters();
  memory.save_copy = save_copy_bytes(run, at, state);
}

}  // namespace

RunMemory run_memory(const RunShape& run, const Coord& at) {
  RunMemory memory;
  for (int chunk = 0; chunk < pipeline_chunks(run); ++chunk) add_chunk(memory, run, at, chunk);
  add_state(memory, run, at);
  const int64_t rows = batch_shape(run).rows() / (run.parallel.sequence ? run.parallel.tensor : 1);
  const int microbatches = batch_shape(run).microbatches;  // of the largest step, which needs the most memory
  memory.executor.tapes = tapes_in_flight(training_plan(run, at.pipeline, microbatches));
  memory.executor.messages = tapes_in_flight(training_plan(run, 0, microbatches));
  memory.executor.boundary = {rows, run.train.micro_batch, run.model.hidden};
  memory.executor.dtype = model_dtype(run.train);
  memory.links = Executor::link_bytes({.rank = at.pipeline, .ranks = run.parallel.pipeline}, memory.executor);
  memory.batch = Batch::bytes(batch_shape(run));
  memory.host = Batch::host_bytes(batch_shape(run));
  memory.scalars = Arena::bytes_of(DType::kF64, {StepScalar::kCount});
  return memory;
}

std::vector<ModelRank> memory_of_model(const RunShape& run) {
  std::vector<ModelRank> ranks;
  for (int tensor = 0; tensor < run.parallel.tensor; ++tensor)
    for (int pipeline = 0; pipeline < run.parallel.pipeline; ++pipeline) {
      const Coord at{.tensor = tensor, .pipeline = pipeline};
      ranks.push_back({at, run_memory(run, at)});
      if (run.parallel.copies() == 1 || run.save_copy == RunShape::SaveCopy::kNone) continue;
      Coord other = at;
      (run.parallel.context > 1 ? other.context : other.data) = 1;
      PlacedState state(run, other);
      ranks.back().others_save_copy = save_copy_bytes(run, other, state);
    }
  return ranks;
}

namespace {

size_t bytes_of_run(const RunShape& run, const std::vector<ModelRank>& ranks) {
  size_t sum = 0;
  const auto others = static_cast<size_t>(run.parallel.copies() - 1);
  for (const ModelRank& rank : ranks)
    sum +=
        rank.memory.total() + others * (rank.memory.total() - rank.memory.save_copy + rank.others_save_copy);
  return sum;
}

/// Bytes that the run's ranks on this machine need. With several machines, counts rank 0's memory for each
/// rank on the first machine, since it is only known that rank 0 is there.
size_t bytes_here(const RunShape& run, const std::vector<ModelRank>& ranks, int ranks_here) {
  if (ranks_here < run.parallel.world) return ranks.front().memory.total() * static_cast<size_t>(ranks_here);
  return bytes_of_run(run, ranks);
}

}  // namespace

void require_memory(const RunShape& run, const std::vector<ModelRank>& ranks, const MachineMemory& machine) {
  const auto [available, ranks_here] = machine;
  const std::string first = ranks.front().memory.text();
  const size_t all = bytes_here(run, ranks, ranks_here);
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  if (run.parallel.world == 1)
    log("memory known before the run: ", first);
  else
    log("memory known before the run: rank 0: ", first, "; all ", ranks_here, " ranks",
        ranks_here < run.parallel.world ? " of this machine: " : ": ", bytes(all));
  if (available && all > *available)
    fail(ErrorKind::kUsage, "the run needs ", bytes(all), " of memory (",
         run.parallel.world == 1 ? first : concat(ranks_here, " ranks, the first one ", first),
         "), this machine has ", bytes(*available),
         " left; lower --micro-batch-size, give --recompute-granularity full --recompute-method uniform, ",
         run.save_copy == RunShape::SaveCopy::kNone ? "" : "give --no-async-save, ",
         "or take a smaller model");
}

void require_device_memory(const std::vector<ModelRank>& ranks, double limit, bool on_host) {
  if (limit == 0) return;
  for (const ModelRank& rank : ranks) {
    const auto bytes = static_cast<double>(on_host ? rank.memory.total() : rank.memory.on_device());
    if (bytes > limit)
      fail(ErrorKind::kUsage, "--device-memory-gb ", limit / 1e9, ": (tensor, pipeline) rank (",
           rank.at.tensor, ", ", rank.at.pipeline, ") needs ", format_fixed(bytes / 1e9, 3), " GB (",
           rank.memory.text(),
           "); lower --micro-batch-size, shard the model over more ranks, give --recompute-granularity full "
           "--recompute-method uniform, or raise the limit");
  }
}

void require_memory_left(const std::vector<ModelRank>& ranks, size_t left) {
  for (const ModelRank& rank : ranks)
    if (rank.memory.on_device() > left)
      fail(
          ErrorKind::kUsage, "the run needs ", format_bytes(static_cast<double>(rank.memory.on_device())),
          " of device memory (", rank.memory.text(), "), the device has ",
          format_bytes(static_cast<double>(left)),
          " left; lower --micro-batch-size, give --recompute-granularity full --recompute-method uniform, or "
          "take a smaller model");
}

void log_parameters(const std::vector<ModelRank>& ranks) {
  for (const ModelRank& rank : ranks)
    log(" > number of parameters on (tensor, pipeline) model parallel rank (", rank.at.tensor, ", ",
        rank.at.pipeline, "): ", rank.memory.parameters);
}

RunShape::SaveCopy wanted_save_copy(const CheckpointConfig& config) {
  if (config.save.empty() || !traits_of(config.format).native || !config.async_save.value_or(true))
    return RunShape::SaveCopy::kNone;
  return config.save_optim ? RunShape::SaveCopy::kAll : RunShape::SaveCopy::kParameters;
}

SaveCopyChoice chosen_save_copy(const CheckpointConfig& config, RunShape run, const MachineMemory& machine) {
  const auto& [available, ranks_here] = machine;
  run.save_copy = wanted_save_copy(config);
  std::vector<ModelRank> ranks = memory_of_model(run);
  if (run.save_copy == RunShape::SaveCopy::kNone || config.async_save || !available ||
      bytes_here(run, ranks, ranks_here) <= *available)
    return {run.save_copy, std::move(ranks)};
  log("saves wait for the disk: this machine's memory cannot hold a copy of what they write");
  run.save_copy = RunShape::SaveCopy::kNone;
  return {run.save_copy, memory_of_model(run)};
}

std::string RunMemory::text() const {
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  return concat("weights ", bytes(weights), ", gradients ", bytes(grads), ", optimizer ", bytes(optimizer),
                ", activations ", executor.tapes, " x ", bytes(executor.tape),
                links > 0 ? concat(", pipeline links ", bytes(links)) : std::string(), ", scratch ",
                bytes(scratch), ", batch ", bytes(batch), ", samples ", bytes(host),
                save_copy > 0 ? concat(", a save's copy ", bytes(save_copy)) : std::string(), ": ",
                bytes(total()));
}

}  // namespace megalith
