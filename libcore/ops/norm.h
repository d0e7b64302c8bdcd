#pragma once

#include "libcore/ops/dropout.h"
#include "libcore/ops/op.h"

namespace megalith {

/// y = (x - mean) / sqrt(var + eps) * w + b over the last axis; with `residual`, dropout(x) + residual is
/// stored in `sum`, rounded, and normalized.
struct LayerNorm {
  View y;                     // [n, h]
  ConstView x;                // [n, h]
  ConstView w, b;             // [h]
  View mean = {}, rstd = {};  // [n] f32, kept for LayerNormGrad; empty: not kept
  ConstView residual = {};    // [n, h]
  View sum = {};              // [n, h]; required with residual; may share x's memory
  DropoutKey dropout = {};    // only with residual; x is then [s, b, h]
  float eps = 1e-5f;
  static constexpr const char* kName = "layer_norm";
  void check() const;
  Cost cost() const;
};

/// The gradients of LayerNorm. dx is overwritten, with `add` included; dw and db are added to.
struct LayerNormGrad {
  View dx;               // [n, h]; may share dy's or add's memory
  View dw, db;           // [h] f32, added to; empty: not wanted (frozen)
  ConstView dy;          // [n, h]
  ConstView x;           // [n, h] what was normalized (LayerNorm's sum if it had a residual)
  ConstView w;           // [h]
  ConstView mean, rstd;  // [n] f32
  ConstView add = {};    // [n, h] gradient that reaches x through the residual path
  static constexpr const char* kName = "layer_norm_grad";
  void check() const;
  Cost cost() const;
};

/// y = x / sqrt(mean(x^2) + eps) * w over the last axis; residual, sum and dropout as in LayerNorm.
struct RmsNorm {
  View y;                   // [n, h]
  ConstView x;              // [n, h]
  ConstView w;              // [h]
  View rstd = {};           // [n] f32, kept for RmsNormGrad; empty: not kept
  ConstView residual = {};  // [n, h]
  View sum = {};            // [n, h]
  DropoutKey dropout = {};
  float eps = 1e-5f;
  static constexpr const char* kName = "rms_norm";
  void check() const;
  Cost cost() const;
};

struct RmsNormGrad {
  View dx;             // [n, h]; may share dy's or add's memory
  View dw;             // [h] f32, added to; empty: not wanted
  ConstView dy;        // [n, h]
  ConstView x;         // [n, h] what was normalized
  ConstView w;         // [h]
  ConstView rstd;      // [n] f32
  ConstView add = {};  // [n, h]
  static constexpr const char* kName = "rms_norm_grad";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
