#pragma once

#include "libcore/base/error.h"
#include "libcore/ops/cpu/kernels/kernels.h"
#include "libcore/tensor/dtype.h"

namespace megalith::cpu {

/// Maps the dtype of an activation or weight to its index in the kernels' tables. Throws kInternal for a
/// dtype on which kernels cannot calculate, including kI8, which only Project reads.
inline Storage storage_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kF32;
    case DType::kBf16:
      return kBf16;
    case DType::kF16:
      return kF16;
    default:
      fail(ErrorKind::kInternal, "cpu: no arithmetic on ", name_of(dtype));
  }
}

}  // namespace megalith::cpu
