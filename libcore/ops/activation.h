#pragma once

#include "libcore/ops/activation_function.h"
#include "libcore/ops/op.h"

namespace megalith {

/// y = function(x).
struct Activate {
  View y;       // [n, f]; may share x's memory
  ConstView x;  // [n, f]
  ActivationFunction function = ActivationFunction::kGeluTanh;
  static constexpr const char* kName = "activate";
  void check() const;
  Cost cost() const;
};

struct ActivateGrad {
  View dx;          // [n, f]; may share dy's memory
  ConstView dy, x;  // [n, f]
  ActivationFunction function = ActivationFunction::kGeluTanh;
  static constexpr const char* kName = "activate_grad";
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
