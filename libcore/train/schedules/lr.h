#pragma once

#include <cstdint>
#include <string>

#include "libcore/config/train_config.h"
#include "libcore/json/json.h"
#include "libcore/json/json_fields.h"

namespace megalith {

/// Saved as its name.
struct LrDecayName {
  LrDecay& decay;
  Json to_json() const { return enum_name(decay); }
};

/// Megatron's OptimizerParamScheduler: the learning rate as a function of the samples that the optimizer has
/// consumed so far, so the first step of a run with warm-up has rate 0.
struct LrSchedule {
  double max = 0, min = 0;
  LrDecay decay = LrDecay::kConstant;
  double first = 0;  // rate of the first step of the warm-up
  // Samples of linear warm-up from `first`; not an integer, since it may be a fraction of decay_end.
  double warmup = 0;
  int64_t decay_end = 1;  // samples at which `min` is reached

  double at(int64_t samples) const;
  /// Under the names of Megatron's opt_param_scheduler: max_lr, min_lr, lr_decay_style, lr_warmup_steps,
  /// lr_decay_steps; and our own lr_warmup_init.
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
  }
};

/// The schedule, in samples, of a configuration after finish() and validate(): steps times the global batch,
/// or what is given in samples.
LrSchedule make_lr_schedule(const TrainConfig&);

}  // namespace megalith
