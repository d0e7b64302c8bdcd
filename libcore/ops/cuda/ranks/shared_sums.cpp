#include "libcore/ops/cuda/ranks/shared_sums.h"

#include <algorithm>

#include <cuda_runtime_api.h>

#include "libcore/base/error.h"
#include "libcore/ops/cuda/backend/cuda_backend.h"
#include "libcore/ops/cuda/queue.h"

namespace megalith::cuda {

static_assert(ScatteredParts::kMax == kMaxSharers);

SumType sum_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return SumType::kF32;
    case DType::kBf16:
      return SumType::kBf16;
    case DType::kF16:
      return SumType::kF16;
    case DType::kF64:
      return SumType::kF64;
    case DType::kI32:
      return SumType::kI32;
    case DType::kI64:
      return SumType::kI64;
    case DType::kU8:
    case DType::kI8:
      break;
  }
  fail(ErrorKind::kInternal, "cuda: no sums of ", name_of(dtype));
}

void reduce_shared(Stream& stream, const SharedReduction& reduction) {
  if (std::max(reduction.from.size(), reduction.to.size()) > ScatteredParts::kMax)
    fail(ErrorKind::kInternal, "cuda: ", reduction.from.size(), " ranks share a device, of which at most ",
         ScatteredParts::kMax, " may");
  require_success(cudaSetDevice(device_of(stream.backend())), "choose a device");
  ScatteredParts parts{.from = {}, .to = {}, .results = static_cast<int>(reduction.to.size())};
  std::copy(reduction.from.begin(), reduction.from.end(), parts.from);
  std::copy(reduction.to.begin(), reduction.to.end(), parts.to);
  launch_rank_sum(queue_of(stream).stream(),
                  {.ranks = static_cast<int>(reduction.from.size()),
                   .elements = reduction.elements,
                   .type = sum_type(reduction.dtype),
                   .max = reduction.max},
                  parts);
}

}  // namespace megalith::cuda

/// The function that ops/backend/shared_device.cpp looks up.
extern "C" __attribute__((visibility("default"))) void megalith_reduce_on_cuda(
    megalith::Stream& stream, const megalith::SharedReduction& reduction) {
  megalith::cuda::reduce_shared(stream, reduction);
}
