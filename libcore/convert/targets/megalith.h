#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// Writes the weights as OUTPUT/release with its tracker, so that megalith-pretrain --load finds them; the
/// folder appears only when complete. kUsage if it already exists and is not empty. Holds one copy of the
/// largest tensor.
OutputPlan plan_checkpoint(const Conversion& conversion);
void export_checkpoint(const Conversion& conversion, const std::string& output);

}  // namespace megalith
