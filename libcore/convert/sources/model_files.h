#pragma once

#include <string>
#include <string_view>

#include "libcore/io/run/run_files.h"

namespace megalith {

/// Registers in `files` all checkpoints in `folder`, whether they exist yet or not: ours, Megatron-LM's and
/// those of the DDP tutorial, with everything in them. Other files next to them belong to the user.
void keeps_checkpoints(RunFiles& files, std::string_view option, const std::string& folder);

/// Adds to `files` what a ModelSource of this name reads: a folder of checkpoints as above, or all files
/// directly in the folder of another model.
void reads_model(RunFiles& files, std::string_view option, const std::string& name);

}  // namespace megalith
