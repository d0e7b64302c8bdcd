#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/train/data/data_set.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

struct EvaluationOptions {
  bool train_loss = false;  // validation() also reports the loss on training samples
  bool accuracy = false;    // validation() also reports the share of labels that the model would choose
  std::function<bool()> stop = {};  // whether this rank wants the run to end
};

/// Evaluates the model of a run. The arguments of the constructor must outlive it.
class Evaluations {
 public:
  Evaluations(const TrainConfig&, const DataSets&, Trainer&, EvaluationOptions);

  bool has_validation() const { return (train_.eval_iters > 0 || data_.valid.whole) && data_.valid.size > 0; }
  bool has_test() const { return train_.eval_iters > 0 && data_.test.size > 0; }
  /// The loss on the samples of each validation set, after TrainState::consumed_valid where a set is not read
  /// as a whole. Before each batch the ranks agree whether one of them wants the run to end; if so, all
  /// return nothing.
  std::optional<std::vector<EvaluationReport>> validation(const TrainState&, const std::string& where) const;
  /// The same on the test samples.
  std::optional<EvaluationReport> test(const TrainState&) const;

 private:
  std::optional<EvaluationReport> validation_of(size_t set, const TrainState&,
                                                const std::string& where) const;
  const DataSet& validation_set(size_t set) const {
    return set == 0 ? data_.valid : data_.more_valid[set - 1];
  }
  std::string name_of_set(size_t set) const;
  int64_t batches_of(const DataSet&) const;
  int64_t samples_of(const DataSet&) const;  // in these batches
  std::optional<double> mean_loss(const DataSet&, int64_t first_sample,
                                  Trainer::LabelCounts* counts = nullptr) const;
  bool any_rank_stops() const;

  const TrainConfig& train_;
  const DataSets& data_;
  Trainer& trainer_;
  EvaluationOptions options_;
};

/// Warns of evaluations that are left out because there is too little data.
void warn_of_missing_evaluations(const PretrainConfig&, const DataSets&);

}  // namespace megalith
