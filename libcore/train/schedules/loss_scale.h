#pragma once

#include "libcore/config/train_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// The factor by which the loss is multiplied before the backward pass. It keeps gradients of activations
/// from vanishing below fp16's smallest number. Works as Megatron's DynamicGradScaler
/// (core/optimizer/grad_scaler.py): once --hysteresis steps have overflowed since the scale last grew, that
/// overflow and each further one halve the scale, down to --min-loss-scale; --loss-scale-window steps in a
/// row without overflow double it. With --loss-scale it is constant; without --fp16 and --loss-scale it is 1.
/// Every rank has its own, and all have the same value: the ranks agree on which steps are skipped.
class LossScale {
 public:
  explicit LossScale(const TrainConfig&);

  double value() const { return value_; }
  /// Call after each training step; `overflow`: loss or gradients were not finite.
  void update(bool overflow);
  /// Whether a lower scale may cure another overflow: false if the scale is fixed or at its minimum.
  bool can_fall() const { return dynamic_ && value_ > least_; }
  bool dynamic() const { return dynamic_; }

  /// The state that a resumed run restores, under Megatron's names: scale, growth_tracker,
  /// hysteresis_tracker.
  Json to_json() const;
  void take(const Json&);  // kData
  template <class V>
  void fields(V&& v) {
    v("scale", value_);
    v("growth_tracker", good_steps_);
    v("hysteresis_tracker", patience_);
  }

 private:
  bool dynamic_;
  double value_, least_;
  int window_, hysteresis_;
  int good_steps_ = 0;  // in a row
  int patience_;        // overflows left before the scale falls
};

}  // namespace megalith
