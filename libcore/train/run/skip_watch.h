#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/train/log/run_observer.h"

namespace megalith {

/// Counts the steps that were skipped because they were not finite. A single bad step may come from bad data;
/// several in a row mean that the model itself is lost.
class SkipWatch {
 public:
  /// The configuration must outlive it.
  explicit SkipWatch(const TrainConfig& train) : train_(train) {}

  /// Counts a step, and warns if it was skipped. While a dynamic loss scale can fall (`can_fall`), it neither
  /// counts nor warns: the first steps of a run overflow until the scale fits. If the model is lost, returns
  /// what happened and what to change.
  std::optional<std::string> lost(const StepFigures&, bool can_fall);

 private:
  const TrainConfig& train_;
  int64_t in_a_row_ = 0;  // number of steps skipped in a row
  int64_t first_ = 0;     // first sample of the first of these steps
};

}  // namespace megalith
