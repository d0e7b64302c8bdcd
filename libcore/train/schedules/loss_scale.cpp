#include "libcore/train/schedules/loss_scale.h"

#include <algorithm>

namespace megalith {
namespace {

double first_value(const TrainConfig& train) {
  if (train.fixed_loss_scale()) return *train.loss_scale;
  return train.fp16 ? train.initial_loss_scale : 1;
}

}  // namespace

LossScale::LossScale(const TrainConfig& train)
    : dynamic_(train.fp16 && !train.fixed_loss_scale()),
      value_(first_value(train)),
      least_(train.min_loss_scale),
      window_(train.loss_scale_window),
      hysteresis_(train.hysteresis),
      patience_(train.hysteresis) {}

void LossScale::update(bool overflow) {
  if (!dynamic_) return;
  if (overflow) {
    good_steps_ = 0;
    if (--patience_ <= 0) value_ = std::max(value_ / 2, least_);
    return;
  }
  if (++good_steps_ < window_) return;
  good_steps_ = 0;
  patience_ = hysteresis_;
  value_ *= 2;
}

Json LossScale::to_json() const {
  return Json(Json::Object{{"scale", value_},
                           {"growth_tracker", int64_t{good_steps_}},
                           {"hysteresis_tracker", int64_t{patience_}}});
}

void LossScale::take(const Json& state) {
  value_ = state["scale"].as_double();
  good_steps_ = static_cast<int>(state["growth_tracker"].as_int());
  patience_ = static_cast<int>(state["hysteresis_tracker"].as_int());
}

}  // namespace megalith
