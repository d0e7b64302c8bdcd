#pragma once

#include <memory>

#include "libcore/ops/cpu/kernels.h"
#include "libcore/ops/cpu/team.h"
#include "libcore/ops/linear.h"
#include "libcore/ops/project.h"

namespace megalith::cpu {

/// Matrix products: of a few rows by own kernels, which read the weights once, others through oneDNN, which
/// picks its instruction set itself (ONEDNN_MAX_CPU_ISA lowers it). Primitives are kept per shape, dtypes and
/// flags. Safe to call from several threads. With one set of threads the result repeats bit for bit; with
/// another number of threads oneDNN may cut the inner dimension elsewhere.
class GemmRunner {
 public:
  GemmRunner(const Kernels& kernels, Team& team);
  ~GemmRunner();
  /// Throws kDevice when oneDNN refuses.
  void run(const Gemm&);
  void run(const Project&);

 private:
  struct Cache;
  void add_nothing(const Gemm&) const;
  void multiply_rows(const Gemm&) const;
  void project(const ProjectArgs&, Storage, int64_t out) const;
  void project_panels(const Project&);
  /// Rows [begin, begin + count) of the weights in fp32.
  void widen(const Project&, int64_t begin, int64_t count, float* to) const;
  const Kernels& kernels_;
  Team& team_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace megalith::cpu
