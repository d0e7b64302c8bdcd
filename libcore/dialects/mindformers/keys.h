#pragma once

#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// How a key of a MindFormers run file is used.
enum class KeyUse {
  kNamed,    // it says how the framework runs, or repeats another key; read as our option of the same name if
             // there is one
  kForeign,  // its whole group has no meaning here, so it is never read as our option of this name
  kRenamed,  // our option under another name
  kCombined,  // it has a meaning only together with other keys
};

/// The fate of a key, given by its path ("model.model_config.seq_length"). A key with a remedy must have one
/// of its plain values when a model is trained.
struct RunKey : OptionFate {
  KeyUse use = KeyUse::kNamed;
  const char* option = "";  // of kRenamed
};

/// All keys; each path occurs once.
const std::vector<RunKey>& run_keys();

}  // namespace megalith
