#pragma once

#include <string>
#include <string_view>

#include "libcore/io/run/run_files.h"

namespace megalith {

/// Registers all checkpoints in `folder`, whether they exist yet or not, as files that the run keeps: our
/// own, Megatron-LM's and those of the DDP tutorial, with everything in them. Other files next to them belong
/// to the user.
void keeps_checkpoints(RunFiles& files, std::string_view option, const std::string& folder);

/// Registers the files that a ModelSource of this name reads. For a folder of checkpoints, they are those of
/// keeps_checkpoints(); for one checkpoint, everything in its folder; for another model, all files directly
/// in its folder: subfolders other than those of keeps_checkpoints() are no part of it, and may be outputs.
void reads_model(RunFiles& files, std::string_view option, const std::string& name);

}  // namespace megalith
