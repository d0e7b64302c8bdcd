#include "libcore/ops/cuda/op_fields.h"

#include <bit>

#include "libcore/base/error.h"
#include "libcore/ops/cuda/element_maths.h"

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

RowBias row_bias(const Gemm& op, bool add) {
  return {.c = op.c.data,
          .c_storage = storage_of(op.c.dtype),
          .bias = op.bias.data,
          .bias_storage = storage_of(op.bias.dtype),
          .rows = op.m(),
          .columns = op.n(),
          .add = add};
}

uint64_t element_bits(DType dtype, double value) {
  switch (dtype) {
    case DType::kF32:
      return bits_of(static_cast<float>(value));
    case DType::kBf16:
      return narrow<Bf16>(static_cast<float>(value)).bits;
    case DType::kF16:
      return narrow<Half>(static_cast<float>(value)).bits;
    case DType::kI32:
      return static_cast<uint32_t>(static_cast<int32_t>(value));
    case DType::kI64:
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    case DType::kF64:
      return std::bit_cast<uint64_t>(value);
    case DType::kI8:
      return static_cast<uint8_t>(static_cast<int8_t>(value));
    case DType::kU8:
      return static_cast<uint8_t>(value);
  }
  return 0;
}

}  // namespace megalith::cuda
