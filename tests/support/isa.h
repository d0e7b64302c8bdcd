#pragma once

#include <vector>

#include "libcore/base/machine/isa.h"

namespace megalith::test {

/// The instruction sets that this processor supports, the simplest first.
inline std::vector<Isa> runnable_isas() {
  std::vector<Isa> all;
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16})
    if (isa <= best_isa()) all.push_back(isa);
  return all;
}

}  // namespace megalith::test
