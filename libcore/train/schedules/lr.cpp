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
  Json json = Json::object();
  add_fields(json, *this);
  return json;
}

namespace {

/// The value of a member; kData if it is missing or has another type. Other programs may have created or
/// changed the checkpoint.
const Json& value_of(const Json& scheduler, const char* key, bool number, const std::string& where) {
  const Json* value = scheduler.is_object() ? scheduler.find(key) : nullptr;
  const auto fits = [number](const Json& v) {
    return number ? v.is_number() && std::fabs(v.as_double()) < 0x1p63 : v.is_string();  // false for NaN
  };
  if (value && fits(*value)) return *value;
  fail(ErrorKind::kData, where, ": has ",
       value ? concat("for ", quote(key), " ", value->dump()) : concat("no ", quote(key)), ", wanted a ",
       number ? "number below 2^63" : "text",
       "; give --override-opt_param-scheduler to take the command line's schedule");
}

class ScheduleReader {
 public:
  ScheduleReader(const Json& scheduler, const std::string& where) : scheduler_(scheduler), where_(where) {}

  void operator()(const char* name, double& out) const {
    out = value_of(scheduler_, name, true, where_).as_double();
  }
  void operator()(const char* name, int64_t& out) const {
    out = static_cast<int64_t>(value_of(scheduler_, name, true, where_).as_double());
  }
  void operator()(const char* name, IfPresent<double> out) const {
    if (scheduler_.find(name)) (*this)(name, out.value);
  }
  void operator()(const char* name, LrDecayName out) const {
    const std::string& style = value_of(scheduler_, name, false, where_).as_string();
    for (const auto& [word, decay] : enum_names(LrDecay{}))
      if (style == word) {
        out.decay = decay;
        return;
      }
    fail(ErrorKind::kData, where_, ": ", name, " ", quote(style), " is not one of constant, linear, cosine");
  }

 private:
  const Json& scheduler_;
  const std::string& where_;
};

}  // namespace

LrSchedule LrSchedule::from_json(const Json& json, const std::string& where) {
  LrSchedule schedule;
  schedule.fields(ScheduleReader(json, where));
  return schedule;
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
