#pragma once

#include <cstdint>

#include "libcore/config/model_config.h"

namespace megalith {

/// Floating-point operations that a model takes for so many samples, forward and backward, as Megatron counts
/// them (training.py: num_floating_point_operations): the matrix products, a causal attention whole, nothing
/// for recomputation. `padded_vocab`: rows of the head.
double model_flops(const ModelConfig& model, int64_t padded_vocab, int64_t samples);

}  // namespace megalith
