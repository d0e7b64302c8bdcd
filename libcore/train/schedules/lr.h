#pragma once

#include <cstdint>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/json/json.h"
#include "libcore/json/json_fields.h"

namespace megalith {

/// A decay style that JSON stores as its name.
struct LrDecayName {
  LrDecay& decay;
  Json to_json() const { return enum_name(decay); }
};

/// A style of the annealing phase that JSON stores as its name.
struct WsdDecayName {
  WsdDecay& decay;
  Json to_json() const { return enum_name(decay); }
};

/// Megatron's OptimizerParamScheduler: the learning rate as a function of the samples that the optimizer has
/// consumed before the step. So the first step of a warm-up has the rate `first`, by default 0.
struct LrSchedule {
  double max = 0, min = 0;
  LrDecay decay = LrDecay::kConstant;
  double first = 0;  // rate of the first step of the warm-up
  // Number of samples over which the rate rises linearly from `first` to `max`. Not an integer, since it may
  // be a fraction of decay_end.
  double warmup = 0;
  int64_t decay_end = 1;  // samples at which `min` is reached
  // With LrDecay::kWsd: the number of samples before decay_end over which the rate falls from `max`, and how.
  int64_t wsd = 0;
  WsdDecay wsd_decay = WsdDecay::kExponential;

  double at(int64_t samples) const;
  /// The members have the names of Megatron's opt_param_scheduler: max_lr, min_lr, lr_decay_style,
  /// lr_warmup_steps, lr_decay_steps. lr_warmup_init and, with LrDecay::kWsd, wsd_decay_steps and
  /// lr_wsd_decay_style are our own: Megatron takes them from the command line.
  Json to_json() const;
  static LrSchedule from_json(const Json&, const std::string& where);  // kData

  template <class V>
  void fields(V&& v) {
    v("max_lr", max);
    v("min_lr", min);
    v("lr_decay_style", LrDecayName{decay});
    v("lr_warmup_init", IfPresent<double>{first});
    v("lr_warmup_steps", warmup);
    v("lr_decay_steps", decay_end);
    if (decay != LrDecay::kWsd) return;
    v("wsd_decay_steps", IfPresent<int64_t>{wsd});
    v("lr_wsd_decay_style", WsdDecayName{wsd_decay});
  }
};

/// The schedule of a configuration after finish() and validate(). Lengths given in steps are converted to
/// samples: steps times the global batch.
LrSchedule make_lr_schedule(const TrainConfig&);

}  // namespace megalith
