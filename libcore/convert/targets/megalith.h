#pragma once

#include <string>

#include "libcore/convert/output/conversion.h"
#include "libcore/convert/output/output.h"

namespace megalith {

/// Writes the weights as OUTPUT/release, with a tracker that names it, so that megalith-pretrain --load finds
/// them. The folder appears only when it is complete. Throws kUsage if it already exists and is not empty. At
/// most one copy of the largest tensor is in memory.
OutputPlan plan_checkpoint(const Conversion& conversion);
void export_checkpoint(const Conversion& conversion, const std::string& output);

}  // namespace megalith
