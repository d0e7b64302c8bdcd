#pragma once

#include "libcore/config/train_config.h"
#include "libcore/options/cli.h"

namespace megalith {

/// When two options of `train` contradict each other, such as --global-batch-size and
/// --gradient-accumulation-steps, the one on the command line takes precedence over the one in a --config
/// file. The latter is reset to its default, and the log names it with its place in the file. Values derived
/// from it are reset too; finish() derives them again. `options` has read `train`; contradictions within the
/// command line, or within the file, remain.
void set_aside_contradicted(TrainConfig& train, const Options& options);

}  // namespace megalith
