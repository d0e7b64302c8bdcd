#pragma once

#include "libcore/ops/cuda/kernels.h"
#include "libcore/tensor/dtype.h"
#include "libcore/tensor/row_positions.h"

/// Fields of ops in the form that the CUDA kernels take. What CPU kernels take as well is in
/// ops/backend/kernel_arguments.h.
namespace megalith::cuda {

/// Throws kInternal: no kernel computes in this dtype.
Storage storage_of(DType);

RowSpans spans_of(const RowPositions&);

}  // namespace megalith::cuda
