#pragma once

#include "libcore/config/train_config.h"
#include "libcore/options/cli.h"

namespace megalith {

/// Where two options of `train` contradict each other, such as --global-batch-size and
/// --gradient-accumulation-steps, the command line's comes before a --config file's, which is set back to its
/// default and named in the log with its place. What was derived from it is forgotten; finish() derives it
/// again. `options` has read `train`; contradictions within the command line, or the file, stay.
void set_aside_contradicted(TrainConfig& train, const Options& options);

}  // namespace megalith
