#include "libcore/train/schedules/lr.h"

#include <cmath>
#include <numbers>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

namespace {

/// The share of the way from `min` to `max` that is left when `ratio` of a phase is over.
double linear_share(double ratio) {
  return 1.0 - ratio;
}
double cosine_share(double ratio) {
  return 0.5 * (std::cos(std::numbers::pi * ratio) + 1.0);
}
double wsd_share(WsdDecay style, double ratio) {
  switch (style) {
    case WsdDecay::kExponential:
      return 2.0 * std::pow(0.5, ratio) - 1.0;
    case WsdDecay::kLinear:
      return linear_share(ratio);
    case WsdDecay::kCosine:
      return cosine_share(ratio);
    case WsdDecay::kMinusSqrt:
      return 1.0 - std::sqrt(ratio);
  }
  fail(ErrorKind::kInternal, "no such style of the annealing phase");
}

}  // namespace

double LrSchedule::at(int64_t samples) const {
  const auto done = static_cast<double>(samples);
  if (warmup > 0 && done <= warmup) return first + (max - first) * done / warmup;
  if (decay == LrDecay::kConstant) return max;
  if (samples > decay_end) return min;
  if (decay == LrDecay::kWsd) {
    const int64_t annealed = samples - (decay_end - wsd);
    if (annealed <= 0) return max;
    return min + wsd_share(wsd_decay, static_cast<double>(annealed) / static_cast<double>(wsd)) * (max - min);
  }
  const double ratio = (done - warmup) / (static_cast<double>(decay_end) - warmup);
  return min + (decay == LrDecay::kLinear ? linear_share(ratio) : cosine_share(ratio)) * (max - min);
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
  template <class T>
  void operator()(const char* name, IfPresent<T> out) const {
    if (scheduler_.find(name)) (*this)(name, out.value);
  }
  void operator()(const char* name, LrDecayName out) const { read_style(name, out.decay); }
  void operator()(const char* name, WsdDecayName out) const {
    if (scheduler_.find(name)) read_style(name, out.decay);
  }

 private:
  template <class Style>
  void read_style(const char* name, Style& out) const {
    const std::string& style = value_of(scheduler_, name, false, where_).as_string();
    std::string words;
    for (const auto& [word, value] : enum_names(Style{})) {
      if (style == word) {
        out = value;
        return;
      }
      words += concat(words.empty() ? "" : ", ", word);
    }
    fail(ErrorKind::kData, where_, ": ", name, " ", quote(style), " is not one of ", words);
  }

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
          .decay_end = config.decay_in_samples(),
          .wsd = config.wsd_in_samples(),
          .wsd_decay = config.wsd_decay};
}

}  // namespace megalith
