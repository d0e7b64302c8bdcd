#pragma once

#include <vector>

#include "libcore/config/model_config.h"

namespace megalith {

/// How RoPE rotates the heads of a model in texts of up to config.seq_length tokens.
struct Rotation {
  /// Radians per position by which each pair of channels turns, config.rotary_channels() / 2 of them; rounded
  /// to fp32 as in Megatron and Hugging Face.
  std::vector<float> frequencies;
  /// Factor of cos and sin, so that rotated channels grow by it: transformers' attention_factor. 1 but for
  /// yarn and longrope. A gradient is rotated back and grows by it, too, so that Rope::inverse stays right.
  float magnitude = 1;
};

/// The rotation by the rules of transformers 5.24 (modeling_rope_utils.py) and of Megatron's
/// --use-rope-scaling. One rule holds for the whole of a text: that of seq_length, also where transformers
/// would have begun a shorter text with another one. `config` must have passed validate().
Rotation rotation_of(const ModelConfig& config);

}  // namespace megalith
