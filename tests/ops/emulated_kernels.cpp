// The CUDA backend and its kernels, compiled for the host over emulated_cuda.h.

#define MEGALITH_CUDA_RUNTIME "tests/ops/emulated_cuda.h"

#include "libcore/ops/cuda/attention.cu"
#include "libcore/ops/cuda/cuda_backend.cpp"  // NOLINT(bugprone-suspicious-include): compiled here
#include "libcore/ops/cuda/elementwise.cu"
#include "libcore/ops/cuda/reduce.cu"
#include "libcore/ops/cuda/rows.cu"

namespace megalith::cuda {

/// Replaces the matrix products: cuBLASLt is not emulated, so they are not tested here.
struct GemmRunner::Cache {};
GemmRunner::GemmRunner() = default;
GemmRunner::~GemmRunner() = default;
void GemmRunner::run(Queue&, const Gemm&) {
  fail(ErrorKind::kInternal, "emulated cuda: no matrix product");
}

}  // namespace megalith::cuda
