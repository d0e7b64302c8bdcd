#pragma once

#include <cstdint>
#include <string>

#include "libcore/base/error.h"

namespace megalith {

/// "9.19.0" for 91900: the number by which cuBLASLt, cuDNN and NCCL name their version. Defined here because
/// CUDA's plugin takes no body from the core's .cpp files.
inline std::string library_version(int64_t number) {
  constexpr int64_t kMajor = 10000, kMinor = 100;
  return concat(number / kMajor, '.', number % kMajor / kMinor, '.', number % kMinor);
}

}  // namespace megalith
