#pragma once

#include "libcore/options/cli.h"

namespace megalith {

/// Makes a run whose command line has Megatron-LM's options for Weights & Biases (--wandb-project, …), which
/// have no effect, say in the log how its curves can be sent there.
void explain_wandb(Options& options);

}  // namespace megalith
