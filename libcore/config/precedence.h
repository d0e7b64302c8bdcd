#pragma once

#include "libcore/config/train_config.h"
#include "libcore/options/cli.h"

namespace megalith {

/// Settles contradictions between options of `train`, such as --global-batch-size and
/// --gradient-accumulation-steps: the command line takes precedence over a --config file. The option from the
/// file is reset to its default, and a log line names it with its place in the file. Values derived from it
/// are reset too, and finish() derives them again. `options` must have filled `train`. Contradictions within
/// the command line, or within the file, remain.
void set_aside_contradicted(TrainConfig& train, const Options& options);

}  // namespace megalith
