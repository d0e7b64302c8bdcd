#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/model/param_store.h"
#include "libcore/model/stage.h"
#include "libcore/train/batch.h"
#include "libcore/train/executor.h"
#include "libcore/train/grad_buffer.h"
#include "libcore/train/memory.h"
#include "libcore/train/optimizer.h"

namespace megalith {

/// One rank's model with all that training it takes: parameters, gradients, optimizer, executor, in arenas of
/// the sizes that run_memory() says. Its steps are the whole of the mathematics of a run; when to evaluate,
/// log and save is the loop's.
class Trainer {
 public:
  /// Configurations after finish(). The parameters have their initial values (train.seed); set others through
  /// params() and call optimizer().take_values(). The backend must outlive it.
  Trainer(const ModelConfig&, const ParallelConfig&, const TrainConfig&, Backend&);

  struct StepResult {
    double loss = 0;       // mean over the tokens of the step, nats
    double grad_norm = 0;  // before clipping
    bool skipped = false;  // loss or gradient was not finite: nothing was updated
  };
  /// One optimizer step with the samples from number `consumed` on.
  StepResult step(const SampleReader&, int64_t consumed, double learning_rate);
  /// Mean loss over the samples of one step, without dropout.
  double evaluate(const SampleReader&, int64_t consumed);

  ParamTable& params() { return params_; }
  const ParamStore& store() const { return *store_; }
  Optimizer& optimizer() { return *optimizer_; }
  const Stage& stage() const { return stages_.front(); }
  Stream& stream() { return stream_; }
  const RunMemory& bill() const { return bill_; }
  const BatchShape& batch_shape() const { return batch_->shape(); }
  /// After at least one step: kInternal when activations or scratch were not exactly what the bill says.
  void check_memory() const;

 private:
  Ctx context(bool training);
  void start_scalars(double learning_rate);
  std::array<double, StepScalar::kCount> read_scalars();

  TrainConfig train_;
  Stream stream_;
  RunMemory bill_;
  std::unique_ptr<Communicator> self_;  // stands for every group of this rank alone
  Region region_;
  ParamTable params_;
  std::vector<Stage> stages_;
  std::unique_ptr<ParamStore> store_;
  std::unique_ptr<GradBuffer> grads_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<Executor> executor_;
  Arena scratch_, batch_arena_, scalar_arena_;
  View scalars_;  // [StepScalar::kCount] f64
  std::unique_ptr<Batch> batch_;
  std::vector<Step> training_plan_, evaluation_plan_;
  bool evaluated_ = false;
};

}  // namespace megalith
