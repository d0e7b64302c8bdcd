#pragma once

#include <cstdint>

#include "libcore/config/model_config.h"

namespace megalith {

/// Floating-point operations of a model for this many samples, forward and backward, as Megatron counts them
/// (training.py: num_floating_point_operations): only matrix products; attention as if it were not causal; no
/// recomputation. `padded_vocab`: rows of the head.
double model_flops(const ModelConfig& model, int64_t padded_vocab, int64_t samples);

}  // namespace megalith
