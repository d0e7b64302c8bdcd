#include "libcore/config/precedence.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "libcore/base/log.h"

namespace megalith {
namespace {

/// An option, and the other options that contradict it.
struct Rule {
  const char* option;
  std::vector<const char*> others;
};
const std::vector<Rule>& rules() {
  static const std::vector<Rule> kList = {
      {"global-batch-size", {"gradient-accumulation-steps", "step-batch-size-schedule"}},
      {"gradient-accumulation-steps", {"global-batch-size", "step-batch-size-schedule"}},
      {"step-batch-size-schedule", {"global-batch-size", "gradient-accumulation-steps", "rampup-batch-size"}},
      {"rampup-batch-size", {"step-batch-size-schedule"}},
      {"train-iters", {"num-epochs", "train-samples"}},
      {"train-samples", {"num-epochs", "train-iters"}},
      {"num-epochs", {"train-iters", "train-samples"}},
      {"bf16", {"fp16", "initial-loss-scale", "min-loss-scale", "loss-scale-window", "hysteresis"}},
      {"fp16", {"bf16"}},
  };
  return kList;
}

/// An option of the run, and the value that it has when it is not given.
struct OwnOption {
  Field field;
  Json plain;

  bool says_something() const { return field_value(field) != plain; }
};

OwnOption option_of(TrainConfig& train, std::string_view name) {
  TrainConfig plain;
  const std::vector<Field> own = fields_of(train), defaults = fields_of(plain);
  const auto at =
      std::find_if(own.begin(), own.end(), [&](const Field& field) { return field.name == name; });
  return {*at, field_value(defaults[static_cast<size_t>(at - own.begin())])};
}

}  // namespace

void set_aside_contradicted(TrainConfig& train, const Options& options) {
  bool changed = false;
  Problems problems;  // stays empty: defaults are valid
  for (const Rule& rule : rules()) {
    if (!options.on_command_line(rule.option) || !option_of(train, rule.option).says_something()) continue;
    for (const char* other : rule.others) {
      const OwnOption own = option_of(train, other);
      // Only values of a --config file are set aside: the file was written independently of this command
      // line, whereas a checkpoint or a plan belongs to it.
      if (!options.in_config_file(other) || !own.says_something()) continue;
      log("--", rule.option, " on the command line comes before --", other, ' ', field_text(own.field), " (",
          options.source(other), ')');
      set_field(own.field, own.plain, {{}, other}, problems);
      changed = true;
    }
  }
  if (!changed) return;
  if (!options.given("train-iters")) train.iters.reset();
  if (!options.given("lr-decay-iters")) train.decay_iters.reset();
  if (!options.given("lr-decay-samples")) train.decay_samples.reset();
}

}  // namespace megalith
