#pragma once

#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/ops/norm.h"

namespace megalith::cpu {

/// Runs the norms of all heads together, in fp32 whatever the tensors' type. Several threads may call it at
/// once.
class HeadsNormRunner {
 public:
  explicit HeadsNormRunner(const Kernels& kernels) : kernels_(kernels) {}
  void run(const HeadSums&) const;
  void run(const HeadsNorm&) const;
  void run(const HeadsNormGrad&) const;

 private:
  const Kernels& kernels_;
};

}  // namespace megalith::cpu
