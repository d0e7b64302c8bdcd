#pragma once

#include "libcore/options/config_file.h"

namespace megalith {

/// Reads a run file of axolotl, recognized by its key base_model. A key with a meaning here becomes our
/// option (some already have our name), a key without effect is added to `ignored`, and a key that would
/// change the result and is not supported causes a complaint. Other keys are left unchanged, so such a file
/// may also hold our own options. docs/finetune.md.
void translate_axolotl(FileTranslation& file);

}  // namespace megalith
