#include "libcore/train/memory.h"

#include <algorithm>
#include <fstream>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/file.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/optimizer.h"

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

RecomputePlan recompute_plan(const TrainConfig& train) {
  return {.granularity = train.recompute,
          .block = train.recompute_method == "block",
          .layers = train.recompute_layers.value_or(0)};
}

DType model_dtype(const TrainConfig& train) {
  return train.bf16 ? DType::kBf16 : train.fp16 ? DType::kF16 : DType::kF32;
}

BatchShape batch_shape(const ModelConfig& model, const ParallelConfig& parallel, const TrainConfig& train,
                       int data_rank) {
  return {.seq_length = model.seq_length,
          .micro_batch = train.micro_batch,
          .microbatches = train.global_batch / (train.micro_batch * parallel.data),
          .data_rank = data_rank,
          .data_size = parallel.data};
}

RunMemory run_memory(const ModelConfig& model, const ParallelConfig& parallel, const TrainConfig& train,
                     int pipeline) {
  const Topology topology(parallel, parallel.world);
  const int chunks =
      parallel.layers_per_chunk ? model.layers / parallel.pipeline / *parallel.layers_per_chunk : 1;
  const BatchShape batch = batch_shape(model, parallel, train);
  RunMemory bill;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const LayerRange range = topology.stage_layers(model.layers, pipeline, chunk, chunks);
    const StageCost cost =
        measure({.model = model,
                 .layers = {.first = range.first,
                            .count = range.count,
                            .embedding = range.first == 0,
                            .head = range.first + range.count == model.layers},
                 .split = {.rank = 0, .size = parallel.tensor, .sequence = parallel.sequence},
                 .recompute = recompute_plan(train),
                 .dtype = model_dtype(train),
                 .micro_batch = train.micro_batch});
    bill.weights += cost.values;
    bill.grads += cost.grads;
    bill.parameters += cost.parameters;
    bill.executor.tape = std::max(bill.executor.tape, cost.tape);
    bill.training_scratch = std::max(bill.training_scratch, cost.scratch);
    bill.scratch = std::max({bill.scratch, cost.scratch, cost.evaluation_scratch});
    bill.forward += cost.forward;
    bill.backward += cost.backward;
  }
  const auto elements = static_cast<int64_t>(bill.grads / size_of(DType::kF32));
  bill.optimizer = Optimizer::state_bytes(elements, model_dtype(train)) /
                   (parallel.distributed_optimizer ? static_cast<size_t>(parallel.data) : 1);
  bill.executor.tapes = tapes_in_flight(
      plan_pipeline(pipeline, parallel.pipeline, chunks, batch.microbatches, parallel.pipeline));
  const int64_t rows = parallel.sequence ? model.seq_length / parallel.tensor : model.seq_length;
  bill.executor.boundary = {rows, train.micro_batch, model.hidden};
  bill.executor.dtype = model_dtype(train);
  bill.links = Executor::boundary_bytes({.rank = pipeline, .ranks = parallel.pipeline}, bill.executor);
  bill.batch = Batch::bytes(batch);
  return bill;
}

std::string RunMemory::text() const {
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  return concat("weights ", bytes(weights), ", gradients ", bytes(grads), ", optimizer ", bytes(optimizer),
                ", activations ", executor.tapes, " x ", bytes(executor.tape),
                links > 0 ? concat(", pipeline links ", bytes(links)) : std::string(), ", scratch ",
                bytes(scratch), ", batch ", bytes(batch), ": ", bytes(total()));
}

}  // namespace megalith
