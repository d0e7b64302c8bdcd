#include "libcore/ops/cuda/op_fields.h"

#include "libcore/base/error.h"

namespace megalith::cuda {

Storage storage_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Storage::kF32;
    case DType::kBf16:
      return Storage::kBf16;
    case DType::kF16:
      return Storage::kF16;
    default:
      fail(ErrorKind::kInternal, "cuda: no arithmetic on ", name_of(dtype));
  }
}

RowSpans spans_of(const RowPositions& rows) {
  return {rows.first, rows.split, rows.jump};
}

}  // namespace megalith::cuda
