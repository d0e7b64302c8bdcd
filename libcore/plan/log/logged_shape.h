#pragma once

#include "libcore/plan/log/log_arguments.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The model of a logged run: `base` with the sizes and features that the log's arguments give. The arguments
/// must obey the rules of the options with the same names; kData, with every complaint, when the model breaks
/// them.
ModelShape logged_shape(const LogArguments& in, ModelShape base);

}  // namespace megalith
