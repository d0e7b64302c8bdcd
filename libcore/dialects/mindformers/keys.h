#pragma once

#include <vector>

#include "libcore/options/fate.h"

namespace megalith {

/// How a key of a MindFormers run file is used.
enum class KeyUse {
  kNamed,  // it says how the framework runs, or repeats what another key says; our option of this name comes
           // first
  kForeign,   // it lies in a group of which nothing else means anything here, whatever its keys are called
  kRenamed,   // our option under another name
  kCombined,  // it means something only together with others
};

/// What a key is here, by its path ("model.model_config.seq_length"). One with a remedy has to have one of
/// its plain values when a model is trained.
struct RunKey : OptionFate {
  KeyUse use = KeyUse::kNamed;
  const char* option = "";  // of kRenamed
};

/// All of them; a path is there once.
const std::vector<RunKey>& run_keys();

}  // namespace megalith
