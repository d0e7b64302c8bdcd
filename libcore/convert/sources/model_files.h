#pragma once

#include <string>
#include <string_view>

#include "libcore/io/run/run_files.h"

namespace megalith {

/// Registers in `files` all checkpoints in `folder`, whether they exist yet or not: ours, Megatron-LM's and
/// those of the DDP tutorial, with everything in them. Other files next to them belong to the user.
void keeps_checkpoints(RunFiles& files, std::string_view option, const std::string& folder);

/// Registers in `files` what a ModelSource of this name reads: for a folder of checkpoints, the files of
/// keeps_checkpoints(); for another model, all files directly in its folder.
void reads_model(RunFiles& files, std::string_view option, const std::string& name);

}  // namespace megalith
