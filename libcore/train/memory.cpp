#include "libcore/train/memory.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"
#include "libcore/ops/backend.h"
#include "libcore/train/optimizer.h"
#include "libcore/train/shards.h"

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
  std::optional<size_t> least = meminfo("MemAvailable");
  for (const auto& left : {left_in_group("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
                           left_in_group("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                                         "/sys/fs/cgroup/memory/memory.usage_in_bytes")})
    if (left) least = least ? std::min(*least, *left) : *left;
  return least;
}

namespace {

// Of the most demanding chunk: chunks take turns on the same tapes and scratch.
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

void add_state(RunMemory& memory, const RunShape& run, const Coord& at) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Stream stream(*dry);
  ParamTable params(run.tuning);
  const std::vector<Stage> stages = make_stages(run, at, params);
  const ParamStore store(params, stream, store_options(run));
  const int place = at.data * run.parallel.context + at.context;
  const Shards shards(store, run.parallel.sharding, place, run.parallel.copies());
  memory.weights = store.value_bytes();
  memory.grads = store.grad_bytes() + GradBuffer::bytes(shards, run.parallel.sharding);
  memory.optimizer = Optimizer::state_bytes(shards.elements(), store.values().dtype);
  memory.parameters = store.parameters();
}

}  // namespace

RunMemory run_memory(const RunShape& run, const Coord& at) {
  RunMemory memory;
  for (int chunk = 0; chunk < pipeline_chunks(run); ++chunk) add_chunk(memory, run, at, chunk);
  add_state(memory, run, at);
  const int64_t rows = batch_shape(run).rows() / (run.parallel.sequence ? run.parallel.tensor : 1);
  memory.executor.tapes = tapes_in_flight(training_plan(run, at.pipeline));
  memory.executor.messages = tapes_in_flight(training_plan(run, 0));
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
    }
  return ranks;
}

std::string RunMemory::text() const {
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  return concat("weights ", bytes(weights), ", gradients ", bytes(grads), ", optimizer ", bytes(optimizer),
                ", activations ", executor.tapes, " x ", bytes(executor.tape),
                links > 0 ? concat(", pipeline links ", bytes(links)) : std::string(), ", scratch ",
                bytes(scratch), ", batch ", bytes(batch), ", samples ", bytes(host), ": ", bytes(total()));
}

}  // namespace megalith
