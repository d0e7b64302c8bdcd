#pragma once

#include <memory>

#include "libcore/ops/cpu/kernels.h"
#include "libcore/ops/linear.h"

namespace megalith::cpu {

/// Matrix products through oneDNN, which picks its instruction set itself (ONEDNN_MAX_CPU_ISA lowers it).
/// Primitives are kept per shape, dtypes and flags. Safe to call from several threads. With one set of
/// threads the result repeats bit for bit; with another number of threads oneDNN may cut the inner dimension
/// elsewhere.
class GemmRunner {
 public:
  explicit GemmRunner(const Kernels& kernels);
  ~GemmRunner();
  /// Throws kDevice when oneDNN refuses.
  void run(const Gemm&);

 private:
  struct Cache;
  void add_nothing(const Gemm&) const;
  void multiply_row(const Gemm&) const;
  const Kernels& kernels_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace megalith::cpu
