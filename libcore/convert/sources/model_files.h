#pragma once

#include <string>
#include <string_view>

#include "libcore/io/run/run_files.h"

namespace megalith {

/// Keeps in `files` what `folder` holds of checkpoints, there already or not: ours, Megatron-LM's and those
/// of the DDP tutorial, with all that lies in them. What else lies beside them is the user's.
void keeps_checkpoints(RunFiles& files, std::string_view option, const std::string& folder);

/// Adds to `files` what a ModelSource of this name reads: a folder of checkpoints as above; of another model
/// all that lies directly in its folder.
void reads_model(RunFiles& files, std::string_view option, const std::string& name);

}  // namespace megalith
