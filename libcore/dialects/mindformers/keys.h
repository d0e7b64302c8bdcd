#pragma once

#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// How a key of a MindFormers run file is used.
enum class KeyUse {
  kNamed,  // it says how the framework runs, or repeats what another key says; our option of this name takes
           // precedence
  kForeign,   // it belongs to a group in which nothing else has a meaning here, so its name does not matter
  kRenamed,   // our option under another name
  kCombined,  // it has a meaning only together with other keys
};

/// The fate of a key, given by its path ("model.model_config.seq_length"). A key with a remedy must have one
/// of its plain values when a model is trained.
struct RunKey : OptionFate {
  KeyUse use = KeyUse::kNamed;
  const char* option = "";  // of kRenamed
};

/// All of them; each path occurs once.
const std::vector<RunKey>& run_keys();

}  // namespace megalith
