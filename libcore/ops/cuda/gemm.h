#pragma once

#include <memory>
#include <vector>

#include "libcore/ops/backend/product_choice.h"
#include "libcore/ops/cuda/queue.h"
#include "libcore/ops/linear.h"

namespace megalith::cuda {

/// The version of cuBLASLt that was loaded: 130100 is 13.1.0.
size_t cublas_version();

/// Gemm with cuBLASLt, for products whose m, n and k are all above 0. Caches the layouts and the chosen
/// algorithm of each shape. Several threads may call it, each with its own queue.
class GemmRunner {
 public:
  GemmRunner();
  ~GemmRunner();
  /// Returns false, and does nothing, if cuBLASLt has no way to run the op's epilogue, or kByParts was
  /// chosen.
  bool run(Queue&, const Gemm&);

  /// The algorithms that cuBLASLt suggests for matrices that begin at multiples of 16 bytes, up to `most`,
  /// the best first. None if it has no way to run the kind's epilogue.
  std::vector<ProductAlgorithm> candidates(const ProductKind&, int most);
  /// Runs a product by this algorithm, without a bias that cuBLASLt does not add itself; `bias_grad` becomes
  /// the sums, to which nothing is added. Returns false if cuBLASLt refuses it.
  bool run_by(Queue&, const Gemm&, const ProductAlgorithm&);
  /// megalith::use_product().
  bool use(const ChosenProduct&);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace megalith::cuda
