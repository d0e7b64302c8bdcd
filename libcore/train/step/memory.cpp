#include "libcore/train/step/memory.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/train/step/chunk_input.h"
#include "libcore/train/step/optimizer.h"
#include "libcore/train/step/rank_state.h"
#include "libcore/train/step/repeated_passes.h"
#include "libcore/train/step/shards.h"

namespace megalith {
namespace {

// Adds a chunk's cost. A rank's chunks use tapes and scratch memory in turn, so the most demanding chunk
// counts.
void add_chunk(RunMemory& memory, const RunShape& run, const Coord& at, int chunk) {
  const StageCost cost = measure(chunk_input(run, at, chunk));
  memory.executor.tape = std::max(memory.executor.tape, cost.tape);
  memory.training_scratch = std::max(memory.training_scratch, cost.scratch);
  memory.scratch = std::max({memory.scratch, cost.scratch, cost.evaluation_scratch});
  if (on_gpu(run)) {
    memory.workspace = std::max({memory.workspace, cost.workspace, cuda::kMinWorkspace});
    memory.graphs = std::max(memory.graphs, graph_bytes(run, cost));
  }
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
  if (run.save_copy == SaveCopy::kNone) return 0;
  const Optimizer optimizer(state.params, state.store, state.shards, state.stream,
                            {.first_moments = first_moment_dtype(run.train)});
  const bool all = run.save_copy == SaveCopy::kAll;
  CheckpointWriter writer({}, 0);  // writes nothing; only records the sizes
  put_state(writer, {state.params, all ? &optimizer : nullptr, run, at});
  return writer.bytes();
}

// ---- sums in rank order

/// What a stream takes that needs this much: nothing, or at least what each stream takes.
size_t stream_bytes(size_t needed) {
  return needed == 0 ? 0 : std::max(needed, cuda::kMinWorkspace);
}

/// Hidden states of a micro-batch, as tensor-parallel ranks sum them.
size_t hidden_bytes(const RunShape& run) {
  return static_cast<size_t>(batch_shape(run).rows() * run.train.micro_batch * run.model.hidden) *
         size_of(model_dtype(run.train));
}

/// The largest sum of exchanges in pieces, of which the first may have a row less than others; with sequence
/// parallelism the parts of one rank, which together are as much as the hidden states. 0 if none is cut.
size_t piece_bytes(const RunShape& run) {
  const ExchangedRows whole{.rows = batch_shape(run).rows(),
                            .bytes = hidden_bytes(run),
                            .ranks = run.parallel.tensor,
                            .sequence = run.parallel.sequence};
  const std::vector<RowPiece> pieces = run.gpu_cut.pieces(whole);
  if (pieces.size() == 1) return 0;
  if (whole.sequence) return whole.bytes;
  int64_t most = 0;  // rows
  for (const RowPiece& piece : pieces) most = std::max(most, piece.end - piece.begin);
  return static_cast<size_t>(most) * (whole.bytes / static_cast<size_t>(whole.rows));
}

/// One half of a sequence's keys and values, as context-parallel ranks sum them.
size_t key_value_bytes(const RunShape& run) {
  const int64_t columns = int64_t{run.model.kv_heads()} / run.parallel.tensor * 2 * run.model.kv_channels;
  return static_cast<size_t>(int64_t{run.model.seq_length} * run.train.micro_batch * columns) *
         size_of(model_dtype(run.train)) / 2;
}

/// What `ranks` gather of the largest of the buckets that `wanted` chooses: parts of equally many elements.
template <class Wanted>
size_t largest(const ParamStore& store, int ranks, const Wanted& wanted) {
  int64_t part = 0;
  for (const Bucket& bucket : store.buckets())
    if (wanted(bucket)) part = std::max(part, (bucket.elements() + ranks - 1) / ranks);
  return static_cast<size_t>(part * ranks) * sizeof(float);
}

/// The scratch memory of a device's streams, of which the compute stream's ops need `ops`, and the rest is
/// for sums in rank order over NCCL (--deterministic-collectives): a stream gathers what all ranks have of
/// its part of a sum, which together is as much as the sum itself. The compute stream sums hidden states and
/// their gradients where they are not cut (those of short micro-batches, and of layers with adapters), keys
/// and values, and a tied table; that of the buckets the largest of these; that of exchanges in pieces a
/// piece. NCCL's own order needs none.
StreamScratch stream_scratch(const RunShape& run, const Coord& at, const ParamStore& store, size_t ops) {
  const ParallelConfig& parallel = run.parallel;
  if (!on_gpu(run) || !parallel.rank_order || run.nccl.channels == 0 || parallel.world == 1)
    return {.compute = ops};
  size_t compute = ops;
  if (parallel.tensor > 1) compute = std::max(compute, hidden_bytes(run));
  if (parallel.context > 1) compute = std::max(compute, key_value_bytes(run));
  const bool end = at.pipeline == 0 || at.pipeline + 1 == parallel.pipeline;
  if (parallel.pipeline > 1 && end)
    compute = std::max(compute, largest(store, 2, [](const Bucket& bucket) { return bucket.alone; }));
  const size_t buckets =
      parallel.copies() > 1 ? largest(store, parallel.copies(), [](const Bucket&) { return true; }) : 0;
  return {.compute = compute, .buckets = stream_bytes(buckets), .pieces = stream_bytes(piece_bytes(run))};
}

void add_state(RunMemory& memory, const RunShape& run, const Coord& at) {
  PlacedState state(run, at);
  memory.weights = state.store.value_bytes();
  memory.grads = state.store.grad_bytes() + GradBuffer::bytes(state.shards, run.parallel.sharding);
  memory.optimizer = Optimizer::state_bytes(state.shards.elements(), state.store.values().dtype,
                                            first_moment_dtype(run.train));
  memory.parameters = state.store.parameters();
  memory.streams = stream_scratch(run, at, state.store, memory.workspace);
  memory.workspace = memory.streams.compute + memory.streams.buckets + memory.streams.pieces;
  memory.save_copy = save_copy_bytes(run, at, state);
}

/// The tapes of a pipeline rank in the largest step. Two rounds of micro-batches need as many as more rounds
/// do, of which a plan could take gigabytes; the last round may be shorter than the others.
int tapes_of_step(const RunShape& run, int pipeline) {
  const int microbatches = batch_shape(run).microbatches, ranks = run.parallel.pipeline;
  return tapes_in_flight(
      training_plan(run, pipeline, std::min(microbatches, 2 * ranks + microbatches % ranks)));
}

}  // namespace

RunMemory run_memory(const RunShape& run, const Coord& at) {
  RunMemory memory;
  for (int chunk = 0; chunk < pipeline_chunks(run); ++chunk) add_chunk(memory, run, at, chunk);
  add_state(memory, run, at);
  const int64_t rows = batch_shape(run).rows() / (run.parallel.sequence ? run.parallel.tensor : 1);
  memory.executor.tapes = tapes_of_step(run, at.pipeline);
  memory.executor.messages = tapes_of_step(run, 0);
  memory.executor.boundary = {rows, run.train.micro_batch, run.model.hidden};
  memory.executor.dtype = model_dtype(run.train);
  memory.links = Executor::link_bytes({.rank = at.pipeline, .ranks = run.parallel.pipeline}, memory.executor);
  memory.batch = Batch::bytes(batch_shape(run));
  memory.host = Batch::host_bytes(batch_shape(run));
  if (on_gpu(run)) memory.staging = cuda::kStagingBytes;  // of the compute stream, the only one that uploads
  if (on_gpu(run)) memory.nccl = nccl_bytes(run.parallel, at, run.nccl);
  memory.scalars = Arena::bytes_of(DType::kF64, {StepScalar::kCount});
  memory.tasks = run.task_bytes;
  return memory;
}

std::vector<ModelRank> memory_of_model(const RunShape& run) {
  std::vector<ModelRank> ranks;
  for (int tensor = 0; tensor < run.parallel.tensor; ++tensor)
    for (int pipeline = 0; pipeline < run.parallel.pipeline; ++pipeline) {
      const Coord at{.tensor = tensor, .pipeline = pipeline};
      ranks.push_back({at, run_memory(run, at)});
      if (run.parallel.copies() == 1 || run.save_copy == SaveCopy::kNone) continue;
      Coord other = at;
      (run.parallel.context > 1 ? other.context : other.data) = 1;
      PlacedState state(run, other);
      ranks.back().others_save_copy = save_copy_bytes(run, other, state);
    }
  return ranks;
}

void log_parameters(const std::vector<ModelRank>& ranks) {
  for (const ModelRank& rank : ranks)
    log(" > number of parameters on (tensor, pipeline) model parallel rank (", rank.at.tensor, ", ",
        rank.at.pipeline, "): ", rank.memory.parameters);
}

std::string RunMemory::text() const {
  const auto bytes = [](size_t n) { return format_bytes(static_cast<double>(n)); };
  return concat("weights ", bytes(weights), ", gradients ", bytes(grads), ", optimizer ", bytes(optimizer),
                ", activations ", executor.tapes, " x ", bytes(executor.tape),
                links > 0 ? concat(", pipeline links ", bytes(links)) : std::string(), ", scratch ",
                bytes(scratch), ", batch ", bytes(batch), ", samples ", bytes(host),
                workspace > 0 ? concat(", kernels' scratch ", bytes(workspace)) : std::string(),
                nccl > 0 ? concat(", NCCL's buffers ", bytes(nccl)) : std::string(),
                graphs > 0 ? concat(", CUDA graphs ", bytes(graphs)) : std::string(),
                staging > 0 ? concat(", page-locked ", bytes(staging)) : std::string(),
                save_copy > 0 ? concat(", a save's copy ", bytes(save_copy)) : std::string(),
                tasks > 0 ? concat(", --eval-tasks ", bytes(tasks)) : std::string(), ": ", bytes(total()));
}

}  // namespace megalith
