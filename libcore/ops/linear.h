#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// c = op(a) op(b) (+ bias) or, with accumulate, c += op(a) op(b). Row-major, with sums in fp32. a and b have
/// one dtype, fp32, bf16 or fp16; c is fp32 or has that dtype (one rounding at the end). Views with more axes
/// count as [rows, last].
struct Gemm {
  View c;               // [m, n]
  ConstView a;          // [m, k], or [k, m] with trans_a
  ConstView b;          // [k, n], or [n, k] with trans_b
  ConstView bias = {};  // [n], c's or a's dtype; empty: none
  bool trans_a = false, trans_b = false, accumulate = false;
  static constexpr const char* kName = "gemm";
  int64_t m() const { return c.shape.rows(); }
  int64_t n() const { return c.shape.back(); }
  int64_t k() const { return trans_a ? a.shape.rows() : a.shape.back(); }
  void check() const;
  Cost cost() const;
};

/// dbias += column sums of dy.
struct BiasGrad {
  View dbias;    // [h] f32
  ConstView dy;  // [n, h]
  static constexpr const char* kName = "bias_grad";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
