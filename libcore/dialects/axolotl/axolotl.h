#pragma once

#include <vector>

#include "libcore/options/config_file.h"
#include "libcore/options/fate.h"

namespace megalith {

/// What happens to a key, which is named by its path ("datasets.type"). If the key has a remedy, only its
/// plain values are accepted.
struct AxolotlKey : OptionFate {
  const char* option = "";  // our option under another name; empty: the key has no effect
};

/// All keys but those that are our own options; each path occurs once.
const std::vector<AxolotlKey>& axolotl_keys();

/// Translates a run file of axolotl, which is recognized by its key base_model. A key with a meaning here
/// becomes our option (some already have our name). A key without effect is added to `ignored`. A key that is
/// not supported and would change the result becomes a problem. Other keys are left unchanged, so such a file
/// may also hold our own options. docs/finetune.md.
void translate_axolotl(FileTranslation& file);

}  // namespace megalith
