#pragma once

#include "libcore/options/config_file.h"

namespace megalith {

/// Reads a run file of axolotl, which is told by its key base_model. A key that means something here becomes
/// our option (others have our name already), one that changes nothing goes to `ignored`, and what would
/// change the result and cannot be done is a complaint. Keys that are not axolotl's are left, so that such a
/// file may hold our own options, too. docs/finetune.md.
void translate_axolotl(FileTranslation& file);

}  // namespace megalith
