#include "libcore/config/checkpoint_config.h"

namespace megalith {

void CheckpointConfig::validate(Problems& problems) const {
  if (save_interval && save.empty()) problems.add("--save-interval ", *save_interval, " needs --save DIR");
  if (keep_last && save.empty()) problems.add("--keep-last ", *keep_last, " needs --save DIR");
  if (override_scheduler && use_checkpoint_scheduler)
    problems.add(
        "--override-opt_param-scheduler and --use-checkpoint-opt_param-scheduler contradict each other; give "
        "one of them");
  if (exit_on_missing && load.empty()) problems.add("--exit-on-missing-checkpoint needs --load DIR");
}

}  // namespace megalith
