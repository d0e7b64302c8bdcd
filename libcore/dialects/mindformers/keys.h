#pragma once

#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// How a key of a MindFormers run file is used.
enum class KeyUse {
  kNamed,    // it says how the framework runs, or repeats another key; read as our option of the same name if
             // there is one
  kForeign,  // its whole group has no effect here, so it is never read as our option of the same name
  kRenamed,  // our option under another name
  kCombined,  // it has a meaning only together with other keys
};

/// What happens to a key, which is named by its path ("model.model_config.seq_length"). If the key has a
/// remedy, training accepts only its plain values.
struct RunKey : OptionFate {
  KeyUse use = KeyUse::kNamed;
  const char* option = "";  // our option's name, for kRenamed
};

/// All keys; each path occurs once.
const std::vector<RunKey>& run_keys();

}  // namespace megalith
