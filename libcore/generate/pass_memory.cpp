#include "libcore/generate/pass_memory.h"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "libcore/parallel/silent_comm.h"

namespace megalith {
namespace {

/// The scratch bytes of a pass over rows[i] tokens of sequence i. They are measured on the dry backend, so
/// they are exactly what the pass will use. `pass`: called with the context, the arena of the tokens and the
/// caches.
template <class Pass>
size_t measured(const Stage& stage, const TensorSplit& split, std::span<const int64_t> rows,
                const Pass& pass) {
  const std::unique_ptr<Backend> dry = make_dry_backend();
  Stream stream(*dry);
  SilentComm ranks("tensor", split.rank, split.size);
  const Region region(ranks);
  Arena scratch = Arena::counting("scratch"), inputs = Arena::counting("tokens");
  std::vector<KvCache> caches;
  std::vector<KvCache*> places;
  for (const int64_t count : rows)
    caches.emplace_back(*dry, stage.config(), stage.layers(), split,
                        KvCache::Size{.batch = 1, .capacity = count, .dtype = stage.dtype()});
  for (KvCache& cache : caches) places.push_back(&cache);
  pass(Ctx{.compute = stream, .tp = region, .scratch = scratch, .training = false}, inputs,
       std::span<KvCache* const>(places));
  return scratch.peak();
}

}  // namespace

TensorSplit split_of(const Generator::Limits& limits) {
  if (!limits.ranks) return {};
  return {.rank = limits.ranks->rank(), .size = limits.ranks->size()};
}

int64_t most_shared_tokens(const Stage& stage) {
  const DType dtype = stage.matrix_dtype();
  return dtype == DType::kBf16 || dtype == DType::kI8 ? Generator::kPromptRows : Project::kFewRows;
}

size_t scratch_bytes(const Stage& stage, const Generator::Limits& limits, int64_t prompt) {
  using Caches = std::span<KvCache* const>;
  const TensorSplit split = split_of(limits);
  const int64_t batch = limits.batch;
  size_t most = measured(stage, split, {{prompt}}, [&](const Ctx& ctx, Arena& inputs, Caches caches) {
    stage.logits(ctx, inputs.make(DType::kI32, {prompt, 1}, "tokens"), 1, *caches[0]);
  });
  std::vector<int64_t> rows(static_cast<size_t>(batch), 1);
  const auto next = [&](const Ctx& ctx, Arena& inputs, Caches caches) {
    stage.next_logits(ctx, inputs.make(DType::kI32, {1, batch}, "tokens"), caches);
  };
  most = std::max(most, measured(stage, split, rows, next));
  const int64_t shared = std::min(most_shared_tokens(stage), prompt * batch);
  if (batch == 1 || batch > shared) return most;
  for (int64_t i = 0; i < batch; ++i)  // at most `prompt` tokens each
    rows[static_cast<size_t>(i)] = shared / batch + (i < shared % batch ? 1 : 0);
  const auto together = [&](const Ctx& ctx, Arena& inputs, Caches caches) {
    stage.last_logits(ctx, inputs.make(DType::kI32, {shared, 1}, "tokens"), caches, rows);
  };
  return std::max(most, measured(stage, split, rows, together));
}

}  // namespace megalith
