#pragma once

#include <string>

#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The model as options of Megatron: its sizes, and every value that differs from its default. The defaults
/// are the same in Megatron and in our trainer. `ours`: also the options that only our trainer has. Requires
/// a shape after finish(); reading the options again gives the same shape.
std::string model_options(const ModelShape&, bool ours = false);

}  // namespace megalith
