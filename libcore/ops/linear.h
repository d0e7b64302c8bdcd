#pragma once

#include <cstdint>
#include <string>

#include "libcore/ops/op.h"

namespace megalith {

/// What a product does beside multiplying, adding a bias and accumulating.
enum class Epilogue : uint8_t { kNone, kGelu, kGeluGrad, kBiasGrad };

/// c = op(a) op(b) (+ bias) or, with accumulate, c += op(a) op(b). Row-major, with sums in fp32. a and b have
/// one dtype, fp32, bf16 or fp16; c is fp32 or has that dtype (one rounding at the end). Views with more axes
/// count as [rows, last]. At most one of the last three tensors is given; it makes the product's epilogue.
/// GELU is ActivationFunction::kGeluTanh. A backend that fuses epilogues (Backend::fuses_epilogues) may apply
/// GELU and its gradient before the product is rounded.
struct Gemm {
  View c;               // [m, n]
  ConstView a;          // [m, k], or [k, m] with trans_a
  ConstView b;          // [k, n], or [n, k] with trans_b
  ConstView bias = {};  // [n], c's or a's dtype; empty: none
  bool trans_a = false, trans_b = false, accumulate = false;
  View before_gelu = {};        // like c: receives the product and its bias, and c becomes GELU of it
  ConstView gelu_grad_at = {};  // like c: c becomes the product times the derivative of GELU here
  View bias_grad = {};          // [m] f32: += the sums of op(a)'s rows; with trans_a only
  static constexpr const char* kName = "gemm";
  Epilogue epilogue() const {
    return before_gelu    ? Epilogue::kGelu
           : gelu_grad_at ? Epilogue::kGeluGrad
           : bias_grad    ? Epilogue::kBiasGrad
                          : Epilogue::kNone;
  }
  int64_t m() const { return c.shape.rows(); }
  int64_t n() const { return c.shape.back(); }
  int64_t k() const { return trans_a ? a.shape.rows() : a.shape.back(); }
  /// "gemm forward 4096 x 3072 x 768": which product of a linear layer it is, by its transposes, and m, n, k.
  std::string description() const;
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
