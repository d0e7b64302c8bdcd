#pragma once

#include "libcore/config/train_config.h"
#include "libcore/json/json.h"

namespace megalith {

/// The factor by which the loss is multiplied before the backward pass, so that gradients of activations do
/// not vanish below fp16's smallest number. A dynamic scale works like Megatron's DynamicGradScaler
/// (core/optimizer/grad_scaler.py): at the start and each time that it has grown, it tolerates --hysteresis -
/// 1 overflows; each further overflow halves it, down to --min-loss-scale. It doubles after
/// --loss-scale-window steps in a row without overflow. With --loss-scale the factor is constant; without
/// --fp16 and --loss-scale it is 1. Every rank has its own object, and all have the same value, because the
/// ranks agree on which steps are skipped.
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
  int good_steps_ = 0;  // steps in a row without overflow
  int patience_;        // overflows left before the scale falls
};

}  // namespace megalith
