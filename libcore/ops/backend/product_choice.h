#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "libcore/ops/linear.h"

/// Which algorithm of cuBLASLt computes a product on a GPU. The plugin uses these types too, so no function
/// here may have its body in a .cpp file.
namespace megalith {

/// What decides which algorithm is the fastest for a Gemm whose matrices begin at multiples of 16 bytes.
struct ProductKind {
  int64_t m = 0, n = 0, k = 0;
  DType in = DType::kF32, out = DType::kF32;
  bool bias = false;  // of c's dtype; another one is added by a kernel of ours
  bool trans_a = false, trans_b = false, accumulate = false;
  auto operator<=>(const ProductKind&) const = default;
};

inline ProductKind product_kind(const Gemm& op) {
  return {.m = op.m(),
          .n = op.n(),
          .k = op.k(),
          .in = op.a.dtype,
          .out = op.c.dtype,
          .bias = op.bias && op.bias.dtype == op.c.dtype,
          .trans_a = op.trans_a,
          .trans_b = op.trans_b,
          .accumulate = op.accumulate};
}

/// An algorithm as cuBLASLt describes it. The same version of cuBLASLt takes it again on the same kind of
/// GPU.
using ProductAlgorithm = std::array<uint64_t, 8>;

struct ChosenProduct {
  ProductKind kind;
  ProductAlgorithm algorithm = {};
};

/// For what an algorithm was chosen.
struct ProductLibrary {
  std::string gpu;     // the name that the driver gives
  int64_t cublas = 0;  // cuBLASLt's version: 130100 is 13.1.0
  bool operator==(const ProductLibrary&) const = default;
};

}  // namespace megalith
