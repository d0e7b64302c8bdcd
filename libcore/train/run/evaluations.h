#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "libcore/config/pretrain_config.h"
#include "libcore/train/data/data_set.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

/// Whether this rank wants the run to end.
using StopQuestion = std::function<bool()>;

/// Evaluates the model of a run. The arguments of the constructor must outlive it.
class Evaluations {
 public:
  /// If `train_loss` is true, validation() also reports the loss on training samples.
  Evaluations(const TrainConfig&, const DataSets&, Trainer&, bool train_loss);

  bool has_validation() const { return train_.eval_iters > 0 && data_.valid.size > 0; }
  bool has_test() const { return train_.eval_iters > 0 && data_.test.size > 0; }
  /// The loss on the validation samples after TrainState::consumed_valid. Every rank asks `stop` before each
  /// batch; if one of them wants the run to end, all return nothing.
  std::optional<EvaluationReport> validation(const TrainState&, std::string where,
                                             const StopQuestion& stop) const;
  /// The same on the test samples.
  std::optional<EvaluationReport> test(const TrainState&, const StopQuestion& stop) const;

 private:
  std::optional<double> mean_loss(const DataSet&, int64_t first_sample, const StopQuestion& stop) const;

  const TrainConfig& train_;
  const DataSets& data_;
  Trainer& trainer_;
  bool train_loss_;
};

/// Warns of evaluations that are left out because there is too little data.
void warn_of_missing_evaluations(const PretrainConfig&, const DataSets&);

}  // namespace megalith
