#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "libcore/base/text.h"
#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/retention.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/ops/backend/backend.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/log/run_outputs.h"
#include "libcore/train/run/evaluations.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/run/skip_watch.h"
#include "libcore/train/run/step_interval.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/saves/saver.h"
#include "libcore/train/saves/start_point.h"
#include "libcore/train/step/trainer.h"

/// The state of a rank during a run. Only for loop.cpp and train_run_start.cpp.
namespace megalith {

/// One call of train_rank(): the constructor creates or loads the initial state (train_run_start.cpp), go()
/// does the rest (loop.cpp).
class TrainRun {
 public:
  explicit TrainRun(const RankInput&);

  PretrainResult go();

 private:
  using Clock = std::chrono::steady_clock;

  int64_t iterations() const { return *config_.train.iters; }
  int64_t global_batch() const { return config_.train.global_batch; }
  bool resumes(const StartPoint& start) const { return !config_.checkpoint.finetune && start.state; }

  bool saves() const { return !config_.checkpoint.save.empty() && !config_.train.eval_only; }
  RunShape agreed_shape() const;
  void take_folder();
  void make_saver();
  void begin_base(const StartPoint*);
  void take_preferences(const Tuning::Preferences&);
  void begin_trained(const StartPoint*);
  void take_args(const StartPoint&);
  void load(const StartPoint&);
  void load_optimizer_state(const StartPoint&);
  void keep_best(const std::string& path);
  void check_data() const;
  void observe();
  void step();
  int64_t tokens_of(int64_t first, int64_t samples) const;
  void stop_when_lost(const StepFigures&);
  void evaluate(const std::string& where);
  void note_evaluation(double loss);
  void save_best();
  void final_evaluations();
  void sample();
  void save();
  bool leads() const { return world_.rank() == 0; }
  bool wants_to_stop() const;
  std::string agreed_reason() const;
  bool asked_to_end();

  PretrainConfig config_;
  const DataSets& data_;
  const Tokenizer* tokenizer_;
  const StopSignal& stop_;
  Communicator& world_;
  const Tuning* tuning_;
  int ranks_here_;                       // of it, on this machine
  std::optional<LockFile> lock_;         // on --save, held by the first rank
  std::unique_ptr<RunOutputs> outputs_;  // only on the first rank, until observe() takes them
  /// The checkpoint from a --load other than --save, which must be kept: the same command will look for it
  /// again. Empty: none.
  std::string base_;
  std::optional<CheckpointUse> base_use_, best_use_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Trainer> trainer_;
  LrSchedule schedule_;
  TrainState state_;
  LossHistory losses_;
  int64_t start_ = 0;        // iterations done before this run
  int64_t saved_ = -1;       // iteration of this run's last checkpoint
  int64_t seen_tokens_ = 0;  // of all steps, including those of earlier runs
  Clock::time_point began_ = Clock::now();
  SkipWatch skips_;
  RunObservers observers_;
  std::optional<Evaluations> evaluations_;
  StepInterval evaluation_interval_, save_interval_;
  std::unique_ptr<Saver> saver_;  // null: there is no --save
  bool stop_agreed_ = false, no_better_ = false;
  std::string end_reason_ = "done", stopped_by_;
};

}  // namespace megalith
