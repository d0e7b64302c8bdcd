#pragma once

#include <chrono>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/saves/checkpointing.h"

namespace megalith {

/// Decides between two steps whether a run ends early. Every rank has one object, and all reach the same
/// decision.
class RunEnd {
 public:
  /// Starts the clock of --exit-duration-in-mins. The input must outlive this object.
  explicit RunEnd(const RankInput&);

  /// Whether this rank wants the run to end: a signal came, or the time is up (only the first rank's clock
  /// counts). Called within a step; the ranks exchange the answers together with the loss.
  bool wanted() const;
  /// Stores the ranks' common answer: whether any of them wants the run to end.
  void agree(bool stop) { agreed_ = stop; }
  bool agreed() const { return agreed_; }
  /// Call after an evaluation that did not improve on the best one. Too many of these in a row end the run.
  void note_worse(const TrainState&);
  /// Whether the run ends after this step. Logs why. Called by every rank once everything else that was due
  /// after the step is done.
  bool due(const TrainState&);

  bool ended_early() const { return !reason_.empty(); }
  /// Why the run ended; "done": all steps are done.
  std::string reason() const { return ended_early() ? reason_ : "done"; }
  const std::string& signal() const { return signal_; }  // the signal that ended the run; empty: none

 private:
  std::string agreed_signal() const;

  const RankInput& in_;
  std::chrono::steady_clock::time_point began_;
  bool agreed_ = false, no_better_ = false;
  std::string reason_, signal_;
};

}  // namespace megalith
