#pragma once

namespace megalith {

/// What a feed-forward block computes of each element; config/activations.h has the names.
enum class ActivationFunction {
  kGeluTanh,     // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as in Megatron's fused kernel
  kGelu,         // 0.5 x (1 + erf(x / sqrt 2))
  kQuickGelu,    // x sigmoid(1.702 x)
  kSilu,         // x sigmoid(x)
  kRelu,         // max(x, 0)
  kSquaredRelu,  // max(x, 0)^2
};

}  // namespace megalith
