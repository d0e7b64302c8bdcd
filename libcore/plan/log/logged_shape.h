#pragma once

#include "libcore/plan/log/log_arguments.h"
#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The model of a logged run: `base` with what the log's arguments name, by the rules of the options of the
/// same names. kData, with every complaint, when it breaks them.
ModelShape logged_shape(const LogArguments& in, ModelShape base);

}  // namespace megalith
