#include "libcore/train/schedules/lr.h"

#include <cmath>
#include <numbers>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

double LrSchedule::at(int64_t samples) const {
  const auto done = static_cast<double>(samples);
  if (warmup > 0 && done <= warmup) return first + (max - first) * done / warmup;
  if (decay == LrDecay::kConstant) return max;
  if (samples > decay_end) return min;
  const double ratio = (done - warmup) / (static_cast<double>(decay_end) - warmup);
  const double share =
      decay == LrDecay::kLinear ? 1.0 - ratio : 0.5 * (std::cos(std::numbers::pi * ratio) + 1.0);
  return min + share * (max - min);
}

Json LrSchedule::to_json() const {
  return Json(Json::Object{{"max_lr", max},
                           {"min_lr", min},
                           {"lr_decay_style", enum_name(decay)},
                           {"lr_warmup_init", first},
                           {"lr_warmup_steps", warmup},
                           {"lr_decay_steps", decay_end}});
}

namespace {

/// Megatron checkpoints made or changed by other programs may lack some members.
const Json& value_of(const Json& scheduler, const char* key, bool number, const std::string& where) {
  const Json* value = scheduler.is_object() ? scheduler.find(key) : nullptr;
  if (value && (number ? value->is_number() : value->is_string())) return *value;
  fail(ErrorKind::kData, where, ": has ",
       value ? concat("for ", quote(key), " ", value->dump()) : concat("no ", quote(key)), ", wanted a ",
       number ? "number" : "text",
       "; give --override-opt_param-scheduler to take the command line's schedule");
}

}  // namespace

LrSchedule LrSchedule::from_json(const Json& json, const std::string& where) {
  const auto number = [&](const char* key) { return value_of(json, key, true, where).as_double(); };
  LrSchedule schedule{.max = number("max_lr"),
                      .min = number("min_lr"),
                      .warmup = number("lr_warmup_steps"),
                      .decay_end = static_cast<int64_t>(number("lr_decay_steps"))};
  if (json.find("lr_warmup_init")) schedule.first = number("lr_warmup_init");
  const std::string& style = value_of(json, "lr_decay_style", false, where).as_string();
  for (const auto& [name, value] : enum_names(LrDecay{}))
    if (style == name) {
      schedule.decay = value;
      return schedule;
    }
  fail(ErrorKind::kData, where, ": lr_decay_style ", quote(style), " is not one of constant, linear, cosine");
}

LrSchedule make_lr_schedule(const TrainConfig& config) {
  return {.max = config.lr,
          .min = config.min_lr,
          .decay = config.decay,
          .first = config.warmup_init,
          .warmup = config.warmup_in_samples(),
          .decay_end = config.decay_in_samples()};
}

}  // namespace megalith
