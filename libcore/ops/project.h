#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// y = x W^T (+ bias) in fp32, with weights stored in any type: for inference, where reading the weights
/// takes most of the time. If x has at most kFewRows rows, weights are widened to fp32, x is not rounded, and
/// a row of y does not depend on the number of rows. With more rows and weights of bf16 or 8 bits a backend
/// may round x to bf16.
struct Project {
  static constexpr int64_t kFewRows = 16;
  View y;                 // [n, out] f32
  ConstView x;            // [n, in] f32
  ConstView w;            // [out, in] f32, bf16, f16 or, with scales, i8
  ConstView scales = {};  // [out] f32: scales of the rows of an i8 w
  ConstView bias = {};    // [out] f32; empty: none
  static constexpr const char* kName = "project";
  int64_t n() const { return y.shape.rows(); }
  int64_t out() const { return y.shape.back(); }
  int64_t in() const { return x.shape.back(); }
  void check() const;
  Cost cost() const;
};

/// Stores a matrix in 8 bits. Each row has its own scale, so that a row of small numbers keeps its precision:
/// scales[j] = max |w[j]| / 127, q[j] = w[j] / scales[j] rounded to the nearest integer.
struct QuantizeRows {
  View q;       // [rows, columns] i8
  View scales;  // [rows] f32
  ConstView w;  // [rows, columns] f32, bf16 or f16
  static constexpr const char* kName = "quantize_rows";
  void check() const;
  Cost cost() const;
};

/// The inverse of QuantizeRows, up to its rounding: w[j] = q[j] * scales[j].
struct WidenRows {
  View w;            // [rows, columns] f32
  ConstView q;       // [rows, columns] i8
  ConstView scales;  // [rows] f32
  static constexpr const char* kName = "widen_rows";
  void check() const;
  Cost cost() const;
};

}  // namespace megalith
