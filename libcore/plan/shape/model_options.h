#pragma once

#include <string>

#include "libcore/plan/shape/model_shape.h"

namespace megalith {

/// The model as Megatron's options: its sizes, and everything that differs from Megatron's defaults, which
/// are ours; `ours`: with what our trainer alone has options for. A finish()ed shape; read again, the same.
std::string model_options(const ModelShape&, bool ours = false);

}  // namespace megalith
