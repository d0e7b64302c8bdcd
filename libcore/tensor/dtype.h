#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace megalith {

enum class DType : uint8_t { kF32, kBf16, kF16, kI32, kI64, kF64, kU8, kI8 };

constexpr size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
      return 1;
    case DType::kBf16:
    case DType::kF16:
      return 2;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kI64:
    case DType::kF64:
      return 8;
  }
  return 0;
}

constexpr std::string_view name_of(DType dtype) {
  switch (dtype) {
    case DType::kU8:
      return "u8";
    case DType::kI8:
      return "i8";
    case DType::kBf16:
      return "bf16";
    case DType::kF16:
      return "fp16";
    case DType::kF32:
      return "fp32";
    case DType::kI32:
      return "i32";
    case DType::kI64:
      return "i64";
    case DType::kF64:
      return "fp64";
  }
  return "?";
}

}  // namespace megalith
