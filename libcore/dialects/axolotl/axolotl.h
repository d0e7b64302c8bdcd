#pragma once

#include "libcore/options/config_file.h"

namespace megalith {

/// Translates a run file of axolotl, which is recognized by its key base_model. A key with a meaning here
/// becomes our option (some already have our name). A key without effect is added to `ignored`. A key that is
/// not supported and would change the result becomes a problem. Other keys are left unchanged, so such a file
/// may also hold our own options. docs/finetune.md.
void translate_axolotl(FileTranslation& file);

}  // namespace megalith
