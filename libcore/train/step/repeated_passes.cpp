#include "libcore/train/step/repeated_passes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {
namespace {

/// Whether ranks exchange tensors within the passes, on the compute stream or on one that joins it.
bool exchanges(const ParallelConfig& parallel) {
  return parallel.tensor > 1 || parallel.context > 1;
}

/// Why no passes of a run are repeated; null: some are.
const char* obstacle(const RunShape& run) {
  const ParallelConfig& parallel = run.parallel;
  if (run.train.cuda_graphs == "none") return "--cuda-graph-impl none";
  if (parallel.pipeline > 1) return "passes of a pipeline's stages wait for messages that are under way";
  if (exchanges(parallel) && run.nccl.channels == 0)
    return "ranks that share a GPU wait for each other's hosts within the passes";
  if (exchanges(parallel) && !run.nccl.mixes_graphs)
    return "NCCL_GRAPH_MIXING_SUPPORT=0 forbids other calls of NCCL after those of a graph";
  if (parallel.sharding == Sharding::kGradients) return "gradients are sharded: each backward pass sums them";
  return nullptr;
}

/// The most kernels and copies of one call of a group. In NCCL's order it is one, after a copy where a
/// sequence is gathered in pieces. A sum in rank order has a copy, two exchanges of messages and a kernel;
/// that of a piece of a sequence has messages for each rank whose rows it has, and in one of these ranks the
/// rest.
int64_t nodes_of_exchange(const ParallelConfig& parallel) {
  constexpr int64_t kInNcclsOrder = 2, kInRankOrder = 5, kOfRoot = 2;
  if (!parallel.rank_order) return kInNcclsOrder;
  return parallel.sequence ? std::max(kInRankOrder, parallel.tensor + kOfRoot) : kInRankOrder;
}

/// What kept a rank of the group from its graph: this one, else the first. Empty: nothing did.
std::string problem_of(Communicator& group, const std::string& mine) {
  std::string first = mine;
  for (std::string& one : group.exchange(mine))
    if (first.empty()) first = std::move(one);
  return first;
}

}  // namespace

RepeatablePasses repeatable_passes(const RunShape& run) {
  if (const char* const why = obstacle(run)) return {.text = concat("not used: ", why)};
  const std::string replayed =
      concat("passes of micro-batches are replayed", exchanges(run.parallel) ? ", with their exchanges" : "");
  if (run.parallel.copies() == 1) return {.any = true, .first = true, .last = true, .text = replayed};
  const bool gathers = run.parallel.sharded();
  if (batch_shape(run).microbatches <= (gathers ? 2 : 1))
    return {.text = "not used: the passes of each micro-batch of a step gather parameters or sum gradients"};
  return {.any = true,
          .first = !gathers,
          .text = concat(replayed, ", but for each step's last one, which sums gradients over the ranks",
                         gathers ? ", and its first one, which gathers parameters" : "")};
}

size_t graph_bytes(const RunShape& run, const StageCost& passes) {
  // Nodes of an op. Only the gradient of an embedding table, which sorts its rows, has more than three.
  constexpr int64_t kOfOp = 3, kOfTable = 24;
  const RepeatablePasses which = repeatable_passes(run);
  if (!which.any) return 0;
  const int64_t of_exchange = nodes_of_exchange(run.parallel);
  int64_t inside = kOfTable + of_exchange * passes.exchanges;
  for (const auto& [name, entry] : passes.ops) inside += kOfOp * entry.calls;
  const int64_t last = which.last ? inside + of_exchange * passes.summed : 0;
  const int64_t nodes = run.samples.short_ones              ? int64_t{kMostGraphs} * std::max(inside, last)
                        : batch_shape(run).microbatches > 1 ? inside + last
                                                            : last;
  return static_cast<size_t>(nodes) * kGraphNodeBytes;
}

RepeatedPasses::RepeatedPasses(Batch& batch, Backend& backend, const RunShape& run, Groups& groups)
    : batch_(batch),
      groups_(groups),
      recorder_(dynamic_cast<WorkRecorder*>(&backend)),
      which_(repeatable_passes(run)) {
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
  if (graphs_.size() == kMostGraphs && !graphs_.contains(kind)) return false;
  const Microbatch inside = batch_.put_in_slot(ctx.compute, at.microbatch);
  repeat(ctx, kind, [&] { passes(inside); });
  return true;
}

void RepeatedPasses::repeat(const Ctx& ctx, const Kind& kind, const std::function<void()>& passes) {
  const auto [graph, is_new] = graphs_.try_emplace(kind);
  if (is_new) return passes();
  if (graph->second && recorder_->repeat(ctx.compute, graph->second)) return;
  if (record(ctx, graph->second, passes) && recorder_->repeat(ctx.compute, graph->second)) return;
  passes();
}

/// Returns whether this rank and those with which it exchanges tensors have recorded the passes. If not, they
/// enqueue all passes from now on. Whatever fails while passes are recorded leaves them to be enqueued: a
/// library may refuse a capture with an error of its own, and the device may lack the memory of a graph. A
/// device that has failed fails again. But NCCL's errors, and those of other ranks, have ended the run.
bool RepeatedPasses::record(const Ctx& ctx, WorkRecorder::Recorded& graph,
                            const std::function<void()>& passes) {
  std::string own;
  graph.reset();  // one that is out of date, whose memory the new one takes
  try {
    graph = recorder_->record_work(ctx.compute, passes);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kComm) throw;
    own = error.what();
  }
  const std::string problem = problem_of(*groups_.context, problem_of(*groups_.tensor, own));
  if (problem.empty()) return true;
  if (!own.empty() || (groups_.tensor->rank() == 0 && groups_.context->rank() == 0))
    warn("CUDA graphs are left out, since the device ", own.empty() ? "of another rank " : "",
         "did not record the passes: ", problem);
  recorder_ = nullptr;
  graphs_.clear();
  return false;
}

}  // namespace megalith
