#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// Writes the weights as ROOT/release with its tracker, for megalith-pretrain --load. kUsage when the folder
/// holds checkpoints already. Holds one copy of the largest tensor.
OutputPlan plan_checkpoint(const Conversion& conversion);
void export_checkpoint(const Conversion& conversion, const std::string& root);

}  // namespace megalith
