#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "libcore/ops/backend/workspace_sizes.h"
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
  Epilogue epilogue = Epilogue::kNone;  // that cuBLASLt fuses; another one is run apart
  auto operator<=>(const ProductKind&) const = default;
};

/// The op's epilogue if cuBLASLt has it for such matrices. GELU and its gradient take a matrix whose rows
/// have a multiple of 8 elements, and add the bias first; the sums of bias_grad have c's type, and a place in
/// the scratch memory.
inline Epilogue fused_epilogue(const Gemm& op) {
  constexpr int64_t kElements = 8;
  const Epilogue wanted = op.epilogue();
  const bool fits = wanted == Epilogue::kBiasGrad
                        ? op.c.dtype == DType::kF32 && op.m() <= cuda::kMaxSums
                        : op.n() % kElements == 0 && (!op.bias || op.bias.dtype == op.c.dtype);
  return fits ? wanted : Epilogue::kNone;
}

inline ProductKind product_kind(const Gemm& op) {
  return {.m = op.m(),
          .n = op.n(),
          .k = op.k(),
          .in = op.a.dtype,
          .out = op.c.dtype,
          .bias = op.bias && op.bias.dtype == op.c.dtype,
          .trans_a = op.trans_a,
          .trans_b = op.trans_b,
          .accumulate = op.accumulate,
          .epilogue = fused_epilogue(op)};
}

/// An algorithm as cuBLASLt describes it. The same version of cuBLASLt takes it again on the same kind of
/// GPU.
using ProductAlgorithm = std::array<uint64_t, 8>;

/// In place of an algorithm: the product's epilogue is not fused, but ops of ours do its work
/// (for_each_part).
inline constexpr ProductAlgorithm kByParts = [] {
  ProductAlgorithm none{};
  none.fill(~uint64_t{0});
  return none;
}();

struct ChosenProduct {
  ProductKind kind;
  ProductAlgorithm algorithm = {};  // may be kByParts if the kind has an epilogue
};

/// For what an algorithm was chosen.
struct ProductLibrary {
  std::string gpu;     // the name that the driver gives
  int64_t cublas = 0;  // cuBLASLt's version: 130100 is 13.1.0
  bool operator==(const ProductLibrary&) const = default;
};

}  // namespace megalith
