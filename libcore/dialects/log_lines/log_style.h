#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/parallel/communicator.h"
#include "libcore/parallel/topology.h"
#include "libcore/train/log/metrics.h"

namespace megalith {

/// What the lines of --log-style need to know about a run.
struct StyledRun {
  LogStyle style = LogStyle::kMegatron;
  int64_t log_interval = 1, global_batch = 1;
  int64_t epoch_steps = 0;  // 0: unknown; then all steps belong to epoch 1
};

struct StyledEvaluation {
  int64_t iteration = 0;
  std::optional<double> train_loss;  // nothing: there are no training data, or it is not wanted
  double valid_loss = 0;
  int64_t batches = 0;
  double seconds = 0;
};

/// Lines that --log-style adds to Megatron's, in the words of the tool that it names.
///
/// ddp-tutorial, with batches counted from 0 in each epoch and steps from 0 in the run; every rank prints
/// lines for its own samples, even if muted:
///   [GPU1] Epoch 1 (Batch 000003): Train loss 9.123
///   [GPU1] Epoch 1 finished, checkpoint: 000009
/// and rank 0: Epoch 1 (Step 000000): Train loss 9.131, Val loss 9.140
///
/// paddle (PaddleNLP's Trainer), every log_interval steps, and at each evaluation:
///   [2026-11-22 10:00:00,123] [    INFO] - loss: 9.12345678, learning_rate: 1e-05, global_step: 20,
///   interval_runtime: 2.1, interval_samples_per_second: 7.6, interval_steps_per_second: 0.5, epoch: 0.02
///   [...] - eval_loss: 9.1, eval_ppl: 8955.3, eval_runtime: 1.2, eval_samples_per_second: ..., ...
class StyledLog {
 public:
  StyledLog(const StyledRun&, Communicator& world, const Coord& at);

  bool counts_from_zero() const { return run_.style == LogStyle::kDdpTutorial; }
  bool wants_own_loss() const { return run_.style == LogStyle::kDdpTutorial; }
  bool wants_train_loss() const { return run_.style == LogStyle::kDdpTutorial; }

  /// Called by every rank; `own_loss` as from Trainer::own_loss().
  void step(const StepFigures&, double own_loss);
  void evaluation(const StyledEvaluation&);

 private:
  void tutorial_step(const StepFigures&, double own_loss);
  void paddle_step(const StepFigures&);
  double loss_of_my_samples(double own_loss) const;
  int64_t epoch_of(int64_t step) const { return run_.epoch_steps > 0 ? step / run_.epoch_steps : 0; }
  std::string paddle_epoch(int64_t iteration) const;

  StyledRun run_;
  Communicator& world_;
  Coord at_;
  double loss_ = 0, seconds_ = 0;  // over the steps since the last line
  int64_t steps_ = 0;
};

}  // namespace megalith
