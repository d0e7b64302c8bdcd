#include "libcore/train/step/repeated_passes.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

/// Why no passes of a run are repeated; null: some are.
const char* obstacle(const RunShape& run) {
  const ParallelConfig& parallel = run.parallel;
  if (run.train.cuda_graphs == "none") return "--cuda-graph-impl none";
  if (parallel.pipeline > 1) return "pipeline stages exchange tensors within the passes";
  if (parallel.tensor > 1) return "tensor-parallel ranks exchange tensors within the passes";
  if (parallel.context > 1) return "context-parallel ranks exchange tensors within the passes";
  if (parallel.sharding == Sharding::kGradients) return "gradients are sharded: each backward pass sums them";
  return nullptr;
}

}  // namespace

RepeatablePasses repeatable_passes(const RunShape& run) {
  if (const char* const why = obstacle(run)) return {.text = concat("not used: ", why)};
  if (run.parallel.copies() == 1)
    return {.any = true, .first = true, .last = true, .text = "passes of micro-batches are replayed"};
  const bool gathers = run.parallel.sharded();
  if (batch_shape(run).microbatches <= (gathers ? 2 : 1))
    return {.text = "not used: the passes of each micro-batch of a step exchange tensors"};
  return {.any = true,
          .first = !gathers,
          .text = concat("passes of micro-batches are replayed, but for each step's last one, which sums "
                         "gradients over the ranks",
                         gathers ? ", and its first one, which gathers parameters" : "")};
}

RepeatedPasses::RepeatedPasses(Batch& batch, Backend& backend, const RunShape& run)
    : batch_(batch), recorder_(dynamic_cast<WorkRecorder*>(&backend)), which_(repeatable_passes(run)) {
  if (!which_.any || !batch.shape().on_gpu) recorder_ = nullptr;
}

bool RepeatedPasses::takes(const Ctx& ctx, const Place& at) const {
  const bool timed = ctx.compute.trace() != nullptr || (ctx.compute.spans() && ctx.compute.spans()->on());
  return recorder_ && ctx.training && !timed && (which_.first || at.microbatch > 0) &&
         (which_.last || !at.last);
}

bool RepeatedPasses::run(const Ctx& ctx, const Place& at, const Passes& passes) {
  if (!takes(ctx, at)) return false;
  if (std::exchange(loss_scale_, ctx.loss_scale) != ctx.loss_scale) graphs_.clear();
  const int64_t rows = batch_.microbatches()[static_cast<size_t>(at.microbatch)].tokens.shape[0];
  const Kind kind{.rows = rows, .last = at.last};
  if (graphs_.size() == kMostKinds && !graphs_.contains(kind)) return false;
  const Microbatch inside = batch_.put_in_slot(ctx.compute, at.microbatch);
  repeat(ctx, kind, [&] { passes(inside); });
  return true;
}

// Whatever fails while passes are recorded leaves them to be enqueued: a library may refuse a capture with an
// error of its own, and the device may lack the memory of a graph. A device that has failed fails again.
void RepeatedPasses::repeat(const Ctx& ctx, const Kind& kind, const std::function<void()>& passes) {
  const auto [graph, is_new] = graphs_.try_emplace(kind);
  if (is_new) return passes();
  if (graph->second && recorder_->repeat(ctx.compute, graph->second)) return;
  try {
    graph->second = recorder_->record_work(ctx.compute, passes);
    if (recorder_->repeat(ctx.compute, graph->second)) return;
  } catch (const Error& error) {
    warn("CUDA graphs are left out, since the device did not record the passes: ", error.what());
    recorder_ = nullptr;
    graphs_.clear();
  }
  passes();
}

}  // namespace megalith
