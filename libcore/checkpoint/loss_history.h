#pragma once

#include <cstdint>

#include "libcore/base/figures/chart.h"
#include "libcore/json/json.h"

namespace megalith {

inline constexpr const char* kLossesFile = "losses.json";  // in a checkpoint folder

/// Saved as a list of [iteration, loss].
struct LossPoints {
  ChartPoints& points;
  Json to_json() const;
  void take(const Json&);  // kData
};

/// The losses of a run so far. They are carried from checkpoint to checkpoint, so that a model card's picture
/// does not depend on a log file elsewhere. When there are more than kMaxLosses training losses, the interval
/// between kept iterations is doubled: every second loss is dropped, and fewer are kept from then on.
class LossHistory {
 public:
  static constexpr size_t kMaxLosses = 4000;

  /// In nats per token, in the order of iterations (from 1). Values that are not finite are skipped.
  void add_train(int64_t iteration, double loss);
  void add_valid(int64_t iteration, double loss);

  const ChartPoints& train() const { return train_; }
  const ChartPoints& valid() const { return valid_; }

  Json to_json() const;
  static LossHistory from_json(const Json&);  // kData
  template <class V>
  void fields(V&& v) {
    v("every", every_);
    v("train", LossPoints{train_});
    v("valid", LossPoints{valid_});
  }

 private:
  ChartPoints train_, valid_;
  int64_t every_ = 1;  // only multiples of this are kept
};

}  // namespace megalith
