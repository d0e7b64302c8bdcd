#pragma once

#include <memory>
#include <mutex>

#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/ops/cpu/products.h"
#include "libcore/ops/cpu/thread_team.h"
#include "libcore/ops/linear.h"
#include "libcore/ops/project.h"

namespace megalith::cpu {

/// Matrix products. Products with few rows use our own kernels, which read the weights once. Others use
/// oneDNN, which chooses its instruction set itself (ONEDNN_MAX_CPU_ISA lowers it) and is loaded for the
/// first such product. Several threads may call it. With the same number of threads, results are reproducible
/// bit for bit; with another number, oneDNN may divide the inner dimension differently.
///
/// A Project of more rows than kFewRows multiplies weights of bf16 or 8 bits as bf16, where the
/// processor has such products, and rounds x to bf16: these are two to three times as fast as those of fp32.
class GemmRunner {
 public:
  GemmRunner(const Kernels& kernels, ThreadTeam& team) : kernels_(kernels), team_(team) {}
  /// Throws kDevice if oneDNN refuses or cannot be loaded.
  void run(const Gemm&);
  void run(const Project&);

 private:
  Products& products();
  void add_nothing(const Gemm&) const;
  void multiply_rows(const Gemm&) const;
  void project(const ProjectArgs&, Storage, int64_t out) const;
  void project_many(const Project&);
  /// Widens panels of weights to fp32 and multiplies them with oneDNN.
  void project_panels(const Project&);
  /// Weights of bf16, or of 8 bits, whose numbers are exact in bf16: their scales are applied to the sums.
  void project_bf16(const Project&, ConstView x);
  void project_int8(const Project&, ConstView x);
  /// Writes rows [begin, begin + count) of the weights to `to`, converted to fp32.
  void widen(const Project&, int64_t begin, int64_t count, float* to) const;
  const Kernels& kernels_;
  ThreadTeam& team_;
  std::once_flag once_;
  std::unique_ptr<Products> products_;
};

}  // namespace megalith::cpu
