#pragma once

#include <string>

#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The model as Megatron's options: its sizes, and every value that differs from the default, which Megatron
/// and our trainer share. `ours`: also the options that only our trainer has. Requires a shape after
/// finish(); reading the options again gives the same shape.
std::string model_options(const ModelShape&, bool ours = false);

}  // namespace megalith
