#include "libcore/train/step/rank_sums.h"

#include <algorithm>

#include "libcore/ops/backend/workspace_sizes.h"

namespace megalith {
namespace {

/// What a stream takes that needs this much: nothing, or at least what each stream takes.
size_t stream_bytes(size_t needed) {
  return needed == 0 ? 0 : std::max(needed, cuda::kMinWorkspace);
}

/// Hidden states of a micro-batch, as tensor-parallel ranks sum them.
size_t hidden_bytes(const RunShape& run) {
  return static_cast<size_t>(batch_shape(run).rows() * run.train.micro_batch * run.model.hidden) *
         size_of(model_dtype(run.train));
}

/// One half of a sequence's keys and values, as context-parallel ranks sum them.
size_t key_value_bytes(const RunShape& run) {
  const int64_t columns = int64_t{run.model.kv_heads()} / run.parallel.tensor * 2 * run.model.kv_channels;
  return static_cast<size_t>(int64_t{run.model.seq_length} * run.train.micro_batch * columns) *
         size_of(model_dtype(run.train)) / 2;
}

/// The largest of the buckets that `wanted` chooses.
template <class Wanted>
size_t largest(const ParamStore& store, const Wanted& wanted) {
  size_t bytes = 0;
  for (const Bucket& bucket : store.buckets())
    if (wanted(bucket)) bytes = std::max(bytes, static_cast<size_t>(bucket.elements()) * sizeof(float));
  return bytes;
}

}  // namespace

size_t rank_sum_bytes(const RunShape& run, const Coord& at, const ParamStore& store, size_t workspace) {
  const ParallelConfig& parallel = run.parallel;
  if (!on_gpu(run) || !parallel.rank_order || run.nccl.channels == 0 || parallel.world == 1) return 0;
  const size_t hidden = hidden_bytes(run);
  size_t compute = workspace;
  if (parallel.tensor > 1) compute = std::max(compute, hidden);
  if (parallel.context > 1) compute = std::max(compute, key_value_bytes(run));
  const bool end = at.pipeline == 0 || at.pipeline + 1 == parallel.pipeline;
  if (parallel.pipeline > 1 && end)
    compute = std::max(compute, largest(store, [](const Bucket& bucket) { return bucket.alone; }));
  const size_t buckets = parallel.copies() > 1 ? largest(store, [](const Bucket&) { return true; }) : 0;
  const auto pieces =
      static_cast<size_t>(parallel.tensor > 1 ? run.gpu_cut.pieces(hidden, parallel.tensor) : 1);
  const size_t piece = pieces == 1 ? 0 : parallel.sequence ? hidden : hidden / pieces;
  return compute - workspace + stream_bytes(buckets) + stream_bytes(piece);
}

}  // namespace megalith
