#include "libcore/train/schedules/loss_scale.h"

#include <algorithm>

#include "libcore/json/json_fields.h"

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
  Json json = Json::object();
  add_fields(json, *this);
  return json;
}

void LossScale::take(const Json& state) {
  fields(FieldReader(state));
}

}  // namespace megalith
