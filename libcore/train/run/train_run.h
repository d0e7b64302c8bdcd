#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "libcore/train/log/run_observer.h"
#include "libcore/train/log/run_outputs.h"
#include "libcore/train/ranks/rank_device.h"
#include "libcore/train/run/evaluations.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/run/run_end.h"
#include "libcore/train/run/run_progress.h"
#include "libcore/train/run/run_saves.h"
#include "libcore/train/run/skip_watch.h"
#include "libcore/train/run/step_interval.h"
#include "libcore/train/step/trainer.h"
#include "libcore/train/tasks/run_tasks.h"

namespace megalith {

/// One call of train_rank(): the constructor creates or loads the initial state, go() does the rest.
class TrainRun {
 public:
  explicit TrainRun(const RankInput&);

  PretrainResult go();

 private:
  int64_t epoch_steps() const { return in_.data.train.epoch / config_.train.global_batch; }  // 0: unknown
  void choose_products(const RunShape&, const StartPoint* start);
  void load(const StartPoint&);
  void observe(std::unique_ptr<RunOutputs>);
  void choose_order();
  void run_steps();
  int64_t begun() const { return progress_.iteration() + static_cast<int64_t>(begun_.size()); }
  void begin_step();
  void finish_before(const Error& error);
  bool reads_late() const;
  bool finish_steps(size_t late);
  void finish_step();
  void stop_when_lost(const StepFigures&);
  void evaluate(const std::string& where, EvaluationPart first);
  bool validate(const std::string& where);
  bool evaluate_tasks();
  void evaluate_and_sample(EvaluationPart first);
  bool ends_in_left_evaluation();
  void final_evaluations();
  void sample();

  const RankInput& in_;
  PretrainConfig config_;  // a resumed run takes some values from its checkpoint
  RunEnd end_;             // starts the clock of --exit-duration-in-mins
  const RankDevice device_;
  std::unique_ptr<Trainer> trainer_;
  RunProgress progress_;
  SkipWatch skips_;
  RunObservers observers_;
  RunSaves saves_;  // reads the trainer and calls the observers, so it is destroyed before them
  std::optional<Evaluations> evaluations_;
  std::optional<RunTasks> tasks_;
  StepIntervals due_;
  /// A step that has begun and whose result was not read.
  struct BegunStep {
    RunProgress::Next next;
    std::chrono::steady_clock::time_point began;
    double stage_seconds;
  };
  std::deque<BegunStep> begun_;                     // at most two
  std::chrono::steady_clock::time_point finished_;  // when the last result was read
  bool runs_ahead_ = false;                         // whether a step may begin before that
};

}  // namespace megalith
