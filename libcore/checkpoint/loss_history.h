#pragma once

#include <cstdint>

#include "libcore/base/chart.h"
#include "libcore/json/json.h"

namespace megalith {

inline constexpr const char* kLossesFile = "losses.json";  // of a checkpoint

/// The losses of a run so far, carried from checkpoint to checkpoint so that a model card's picture does not
/// depend on a log file that stayed elsewhere. When there are more than kMaxLosses training losses, those of
/// every second kept iteration are left out, then and from then on.
class LossHistory {
 public:
  static constexpr size_t kMaxLosses = 4000;

  /// Nats a token, in the order of iterations (from 1). What is not finite is passed over.
  void add_train(int64_t iteration, double loss);
  void add_valid(int64_t iteration, double loss);

  const ChartPoints& train() const { return train_; }
  const ChartPoints& valid() const { return valid_; }

  Json to_json() const;
  static LossHistory from_json(const Json&);  // kData

 private:
  ChartPoints train_, valid_;
  int64_t every_ = 1;  // iterations that are no multiple are left out
};

}  // namespace megalith
