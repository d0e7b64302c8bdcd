#pragma once

#include "libcore/ops/backend/shared_device.h"
#include "libcore/ops/cuda/ranks/rank_sums.h"

namespace megalith::cuda {

/// kInternal for a type that is not reduced.
SumType sum_type(DType);

/// reduce_on_cuda() of ops/backend/shared_device.h.
void reduce_shared(Stream&, const SharedReduction&);

}  // namespace megalith::cuda
