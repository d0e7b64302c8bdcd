#pragma once

#include <cstdint>
#include <optional>

#include "libcore/checkpoint/loss_history.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/train/data/data_set.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/saves/start_point.h"
#include "libcore/train/schedules/lr.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

/// The progress of a run between two steps: what a checkpoint holds in addition to tensors.
class RunProgress {
 public:
  /// The progress before the first step. Configuration and samples must outlive it.
  RunProgress(const PretrainConfig&, const SampleSource& samples);
  /// Continues from the progress of a saved run, but not with its schedule.
  void resume(const StartPoint&);
  void take_schedule(const LrSchedule& schedule) { schedule_ = schedule; }

  /// The samples of the next step, and its learning rate.
  struct Next {
    int64_t first, samples;
    double rate, rate_if_skipped;  // the learning rate, and what it is if the step before was skipped
    bool warming_up;
  };
  /// `before`: a step that has begun and was not counted yet, after which the next one comes; null: none.
  /// Both rates are the same then.
  Next next(const Next* before = nullptr) const;
  /// Counts the step that was just done, and returns its figures except `seconds`.
  StepFigures advance(const Next&, const Trainer::StepResult&);
  /// Counts an evaluation, and the samples that it read of a validation set that is not read as a whole.
  /// `loss`: of the validation set; the mean over the sets if there are several.
  void add_validation(double loss);
  /// Records what a signal left undone of the evaluation after the last step; nothing once it is done.
  void set_evaluation_left(std::optional<EvaluationPart> part) { state_.evaluation_left = part; }
  /// Records the figure of an evaluation by which a run's best state is chosen: the loss, or 1 - accuracy.
  /// Returns whether it is lower than the best earlier one by more than `threshold`.
  bool note_figure(double figure, double threshold);

  const TrainState& state() const { return state_; }
  const LrSchedule& schedule() const { return schedule_; }
  const LossHistory& losses() const { return losses_; }
  int64_t iteration() const { return state_.iteration; }
  int64_t start() const { return start_; }
  bool moved() const { return state_.iteration > start_; }

 private:
  int64_t tokens_of(int64_t first, int64_t samples) const;

  const PretrainConfig& config_;
  const SampleSource& samples_;
  TrainState state_;
  LrSchedule schedule_;
  LossHistory losses_;
  int64_t start_ = 0;        // steps done by earlier runs
  int64_t seen_tokens_ = 0;  // tokens of all steps, including those of earlier runs
};

}  // namespace megalith
