#pragma once

#include <string>

#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The model as Megatron's options: its sizes, and everything that differs from Megatron's defaults, which
/// are ours too; `ours`: also what only our trainer has options for. For a shape after finish(); reading the
/// options again gives the same shape.
std::string model_options(const ModelShape&, bool ours = false);

}  // namespace megalith
