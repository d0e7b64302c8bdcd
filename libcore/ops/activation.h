#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// y = gelu(x). With tanh_form, gelu(x) is 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as in Megatron's
/// fused kernel and GPT-2's gelu_new; without it, 0.5 x (1 + erf(x / sqrt 2)).
struct Gelu {
  View y;       // [n, f]; may share x's memory
  ConstView x;  // [n, f]
  bool tanh_form = true;
  static constexpr const char* kName = "gelu";
  void check() const;
  Cost cost() const;
};

struct GeluGrad {
  View dx;          // [n, f]; may share dy's memory
  ConstView dy, x;  // [n, f]
  bool tanh_form = true;
  static constexpr const char* kName = "gelu_grad";
  void check() const;
  Cost cost() const;
};

/// y = silu(gate) * up.
struct SwiGlu {
  View y;       // [n, f]
  ConstView x;  // [n, 2, f]: gate, then up
  static constexpr const char* kName = "swiglu";
  void check() const;
  Cost cost() const;
};

struct SwiGluGrad {
  View dx;       // [n, 2, f]; may share x's memory
  ConstView dy;  // [n, f]
  ConstView x;   // [n, 2, f]
  static constexpr const char* kName = "swiglu_grad";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
