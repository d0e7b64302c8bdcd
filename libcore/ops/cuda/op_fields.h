#pragma once

#include <cstdint>

#include "libcore/ops/cuda/kernels.h"
#include "libcore/ops/linear.h"
#include "libcore/tensor/dtype.h"
#include "libcore/tensor/row_positions.h"

/// Fields of ops in the form that the CUDA kernels take. What CPU kernels take as well is in
/// ops/backend/kernel_arguments.h.
namespace megalith::cuda {

/// Throws kInternal: no kernel computes in this dtype.
Storage storage_of(DType);

RowSpans spans_of(const RowPositions&);

/// A product's result and its bias, which is added to each row (`add`) or becomes each row.
RowBias row_bias(const Gemm&, bool add);

/// The bits of `value` as an element of this dtype, rounded to nearest if it is a float; the first
/// size_of(dtype) bytes count.
uint64_t element_bits(DType, double value);

}  // namespace megalith::cuda
