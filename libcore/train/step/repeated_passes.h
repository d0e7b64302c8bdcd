#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "libcore/model/measure.h"
#include "libcore/ops/backend/recorded_work.h"
#include "libcore/parallel/groups.h"
#include "libcore/train/step/batch.h"
#include "libcore/train/step/executor.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// Which micro-batches of a run have passes that a device can repeat as a graph. It may have exchanges of
/// tensor- and context-parallel ranks, which all repeat the same passes (NCCL asks that a call is captured by
/// all of its ranks or by none). Not repeated are passes that wait for work that began before them, such as
/// gathers of parameters, sums of gradients beside the passes, and messages of a pipeline.
struct RepeatablePasses {
  bool any = false;
  bool first = false, last = false;  // whether those of a step are among them
  std::string text;                  // what is repeated, or why nothing is, for the log
};
RepeatablePasses repeatable_passes(const RunShape&);

/// The most bytes of a device that a node of a graph takes: a kernel with its arguments, or a copy. NVIDIA
/// states no figure. Graphs of 500, 1000 and 2000 kernels took 362, 395 and 458 MiB with CUDA 11.2 and driver
/// 470 (forums.developer.nvidia.com/t/244901): 64 to 68 KiB more for each, as readings in blocks of 2 MiB
/// show it.
inline constexpr size_t kGraphNodeBytes = size_t{72} << 10;
/// The most bytes of a device that the graphs of a run take; 0 if it repeats no passes. The cost is that of
/// its passes over a micro-batch.
size_t graph_bytes(const RunShape&, const StageCost&);

/// The most graphs of a run: one for each kind of micro-batch.
inline constexpr size_t kMostGraphs = 8;

/// Forward and backward passes of micro-batches, which a device repeats from a graph, one for each kind, in
/// place of enqueuing each kernel. A kind's first passes are enqueued, its second ones recorded.
/// Micro-batches pass through the batch's slot, so all of a kind have the same addresses. Ranks that exchange
/// tensors within the passes have the same kinds in the same order; they agree on each graph, so that all or
/// none of them repeat it. Refers to the batch and the groups, which must outlive it.
class RepeatedPasses final : public PassRepeater {
 public:
  RepeatedPasses(Batch&, Backend&, const RunShape&, Groups&);

  /// Does nothing, and returns false, while the stream's work is timed, if the passes of this micro-batch
  /// cannot be repeated, or if there are kMostGraphs other kinds: where lengths differ, most come only once.
  bool run(const Ctx&, const Place&, const Passes&) override;

 private:
  /// Passes of equal kinds and the same loss scale enqueue the same work.
  struct Kind {
    int64_t rows;
    bool last;
    auto operator<=>(const Kind&) const = default;
  };
  bool takes(const Ctx&, const Place&) const;
  void repeat(const Ctx&, const Kind&, const std::function<void()>& passes);
  bool record(const Ctx&, WorkRecorder::Recorded&, const std::function<void()>& passes);

  Batch& batch_;
  Groups& groups_;
  WorkRecorder* recorder_;  // null: nothing is repeated
  RepeatablePasses which_;
  std::map<Kind, WorkRecorder::Recorded> graphs_;  // null: the kind has been enqueued once
  float loss_scale_ = 0;                           // of these
};

}  // namespace megalith
