#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "libcore/ops/backend/recorded_work.h"
#include "libcore/train/step/batch.h"
#include "libcore/train/step/executor.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// Which micro-batches of a run have passes that exchange nothing with other ranks, so that a device can
/// repeat them as a graph. A graph with exchanges would wait for other ranks, and a graph cannot wait for a
/// gather that began before it.
struct RepeatablePasses {
  bool any = false;
  bool first = false, last = false;  // whether those of a step are among them
  std::string text;                  // what is repeated, or why nothing is, for the log
};
RepeatablePasses repeatable_passes(const RunShape&);

/// Forward and backward passes of micro-batches, which a device repeats from a graph, one for each kind, in
/// place of enqueuing each kernel. A kind's first passes are enqueued, its second ones recorded.
/// Micro-batches pass through the batch's slot, so all of a kind have the same addresses. Refers to the
/// batch, which must outlive it.
class RepeatedPasses final : public PassRepeater {
 public:
  RepeatedPasses(Batch&, Backend&, const RunShape&);

  /// Does nothing, and returns false, while the stream's work is timed, if the passes of this micro-batch
  /// cannot be repeated, or if there are kMostKinds other kinds: where lengths differ, most come only once.
  bool run(const Ctx&, const Place&, const Passes&) override;

 private:
  static constexpr size_t kMostKinds = 8;
  /// Passes of equal kinds and the same loss scale enqueue the same work.
  struct Kind {
    int64_t rows;
    bool last;
    auto operator<=>(const Kind&) const = default;
  };
  bool takes(const Ctx&, const Place&) const;
  void repeat(const Ctx&, const Kind&, const std::function<void()>& passes);

  Batch& batch_;
  WorkRecorder* recorder_;  // null: nothing is repeated
  RepeatablePasses which_;
  std::map<Kind, WorkRecorder::Recorded> graphs_;  // null: the kind has been enqueued once
  float loss_scale_ = 0;                           // of these
};

}  // namespace megalith
