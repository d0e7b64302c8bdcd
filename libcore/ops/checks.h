#pragma once

#include "libcore/ops/op.h"

namespace megalith {

/// The rules that check() of several ops share. Each throws kInternal with the op's name, the rule and what
/// was found. For an optional tensor, the caller skips the check if the view is empty.

inline bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16;
}

/// The tensor must be fp32, bf16 or fp16, as activations and weights are.
inline void want_float(const char* op, const char* rule, const ConstView& view) {
  if (!view || !is_float(view.dtype))
    fail(ErrorKind::kInternal, op, ": wanted ", rule, " present, fp32, bf16 or fp16, got ",
         view ? name_of(view.dtype) : "no tensor");
}

/// The tensor must be present and have this dtype.
inline void want_dtype(const char* op, const char* rule, const ConstView& view, DType dtype) {
  if (!view || view.dtype != dtype)
    fail(ErrorKind::kInternal, op, ": wanted ", rule, " present and ", name_of(dtype), ", got ",
         view ? name_of(view.dtype) : "no tensor");
}

/// Both tensors must have the same number of rows, last axis and dtype: [s, b, h] matches [s * b, h].
inline void want_alike(const char* op, const char* rule, const ConstView& a, const ConstView& b) {
  require(a.shape.elements() == b.shape.elements() && a.shape.back() == b.shape.back(), op, rule, a.shape,
          b.shape);
  require(a.dtype == b.dtype, op, rule, name_of(a.dtype), name_of(b.dtype));
  require(bool(a) == bool(b), op, rule, a ? "a tensor" : "no tensor", b ? "a tensor" : "no tensor");
}

/// The tensor must have this number of elements and this dtype.
inline void want_vector(const char* op, const char* rule, const ConstView& view, int64_t elements,
                        DType dtype) {
  want_dtype(op, rule, view, dtype);
  require(view.elements() == elements, op, rule, view.shape, elements);
}

inline double bytes_of(const ConstView& view) {
  return view ? static_cast<double>(view.bytes()) : 0.0;
}

}  // namespace megalith
