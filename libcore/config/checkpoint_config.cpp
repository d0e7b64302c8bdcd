#include "libcore/config/checkpoint_config.h"

#include "libcore/config/model_config.h"

namespace megalith {

void CheckpointConfig::finish() {
  if (const char* const with_dist = traits_of(format).with_dist; with_dist && wants_dist())
    format = checkpoint_format(with_dist);
}

namespace {
void validate_retention(const CheckpointConfig& c, Problems& problems) {
  if (!c.retain_interval) return;
  const Opt option{"save-retain-interval"};
  if (c.save.empty() || !c.save_interval)
    problems.add(option, ' ', *c.retain_interval, " needs ", Opt{"save"}, " DIR and ", Opt{"save-interval"},
                 " N");
  else if (*c.retain_interval % *c.save_interval != 0)
    problems.add(option, ' ', *c.retain_interval, " is not a multiple of ", Opt{"save-interval"}, ' ',
                 *c.save_interval, nearest_multiples(*c.retain_interval, *c.save_interval));
  if (c.keep_last)
    problems.add(option, ' ', *c.retain_interval, " and ", Opt{"keep-last"}, ' ', *c.keep_last,
                 " contradict each other; give one of them");
  if (!traits_of(c.format).tracked)
    problems.add(option, ' ', *c.retain_interval, ": files of ", Opt{"ckpt-format"}, ' ', enum_name(c.format),
                 " are all kept; leave one of them out");
}
}  // namespace

void CheckpointConfig::validate(Problems& problems) const {
  validate_retention(*this, problems);
  if (save_interval && save.empty())
    problems.add(Opt{"save-interval"}, ' ', *save_interval, " needs ", Opt{"save"}, " DIR");
  if (keep_last && save.empty())
    problems.add(Opt{"keep-last"}, ' ', *keep_last, " needs ", Opt{"save"}, " DIR");
  if (async_save.value_or(false) && !traits_of(format).native)
    problems.add(Opt{"async-save"}, ": ", Opt{"ckpt-format"}, ' ', enum_name(format),
                 " is written while training waits; leave one of them out");
  if (keep_last && !traits_of(format).tracked)
    problems.add(Opt{"keep-last"}, ' ', *keep_last, ": files of ", Opt{"ckpt-format"}, ' ', enum_name(format),
                 " are all kept; leave one of them out");
  if (const char* const refusal = traits_of(format).refusal)
    problems.add(Opt{"ckpt-format"}, ' ', enum_name(format), " is not written: ", refusal);
  if (dist_format == "zarr") problems.add(Opt{"dist-ckpt-format"}, " zarr is not written; give torch_dist");
  if (wants_dist() && !traits_of(format).with_dist)
    problems.add(dist ? Phrase(Opt{"use-dist-ckpt"}) : Phrase(Opt{"dist-ckpt-format"}, ' ', dist_format),
                 " and ", Opt{"ckpt-format"}, ' ', enum_name(format),
                 " contradict each other; give one of them");
  if (override_scheduler && use_checkpoint_scheduler)
    problems.add(Opt{"override-opt_param-scheduler"}, " and ", Opt{"use-checkpoint-opt_param-scheduler"},
                 " contradict each other; give one of them");
  if (number && save.empty())
    problems.add(Opt{"checkpoint"}, ' ', *number, " needs ", Opt{"save"}, " DIR, where it is read from");
  if (number && !load.empty())
    problems.add(Opt{"checkpoint"}, ' ', *number, " and ", Opt{"load"}, ' ', load,
                 " contradict each other; give one of them");
  if (step && load.empty())
    problems.add(Opt{"ckpt-step"}, ' ', *step, " needs ", Opt{"load"}, " DIR, the folder of its checkpoint");
  if (exit_on_missing && load.empty())
    problems.add(Opt{"exit-on-missing-checkpoint"}, " needs ", Opt{"load"}, " DIR");
}

template std::vector<Field> fields_of<CheckpointConfig>(CheckpointConfig&);

}  // namespace megalith
