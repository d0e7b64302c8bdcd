#pragma once

#include <cstdint>

#include "libcore/config/model_config.h"

namespace megalith {

/// Floating-point operations of a model's forward and backward passes over this many samples, as Megatron
/// counts them (training.py: num_floating_point_operations). Counts only matrix products, treats attention as
/// if it were not causal, and leaves out recomputation. `padded_vocab`: number of rows of the output head.
double model_flops(const ModelConfig& model, int64_t padded_vocab, int64_t samples);

}  // namespace megalith
