#pragma once

#include "libcore/options/config_file.h"

namespace megalith {

/// Reads a run file of axolotl, which is recognized by its key base_model. A key that has a meaning here
/// becomes our option (some already have our name), one that has no effect goes to `ignored`, and one that
/// would change the result and is not supported is a complaint. Other keys are left alone, so such a file may
/// also hold our own options. docs/finetune.md.
void translate_axolotl(FileTranslation& file);

}  // namespace megalith
