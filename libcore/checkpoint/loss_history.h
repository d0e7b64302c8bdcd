#pragma once

#include <cstdint>
#include <string>

#include "libcore/base/figures/chart.h"
#include "libcore/json/json.h"

namespace megalith {

inline constexpr const char* kLossesFile = "losses.json";  // in a checkpoint folder

/// Loss points as they are saved: a list of [iteration, loss].
struct LossPoints {
  ChartPoints& points;
  Json to_json() const;
  void take(const Json&);  // kData
};

/// The losses of a run so far. They are saved in each checkpoint and restored when a run resumes, so that the
/// picture in a model card does not depend on a log file elsewhere. Whenever there are more than kMaxLosses
/// training losses, every second one is dropped, and from then on only half as many iterations are kept.
class LossHistory {
 public:
  static constexpr size_t kMaxLosses = 4000;

  /// `loss` is in nats per token. Iterations begin at 1 and must be added in order. Values that are not
  /// finite are skipped.
  void add_train(int64_t iteration, double loss);
  void add_valid(int64_t iteration, double loss);

  const ChartPoints& train() const { return train_; }
  const ChartPoints& valid() const { return valid_; }

  Json to_json() const;
  static LossHistory from_json(const Json&, const std::string& where);  // kData, with `where` in front
  template <class V>
  void fields(V&& v) {
    v("every", every_);
    v("train", LossPoints{train_});
    v("valid", LossPoints{valid_});
  }

 private:
  ChartPoints train_, valid_;
  int64_t every_ = 1;  // only iterations that are multiples of this are kept
};

}  // namespace megalith
