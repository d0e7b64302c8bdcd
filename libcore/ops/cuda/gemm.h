#pragma once

#include <memory>

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
  void run(Queue&, const Gemm&);

 private:
  struct Cache;
  std::unique_ptr<Cache> cache_;
};

}  // namespace megalith::cuda
