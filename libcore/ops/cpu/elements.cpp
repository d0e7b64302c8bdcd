#include "libcore/ops/cpu/elements.h"

#include <algorithm>
#include <cstring>

#include "libcore/ops/cpu/arguments.h"
#include "libcore/ops/cpu/storage.h"
#include "libcore/ops/cpu/threads.h"

namespace megalith::cpu {
namespace {

template <class T>
void fill_with(const View& to, T value) {
  for_each_range(to.elements(), 4 * kRange,
                 [&](int64_t begin, int64_t end) { std::fill(to.as<T>() + begin, to.as<T>() + end, value); });
}

}  // namespace

void copy_elements(const Kernels& kernels, const View& to, const ConstView& from) {
  if (to.dtype == from.dtype) {
    for_each_range(static_cast<int64_t>(to.bytes()), 4 * kRange, [&](int64_t begin, int64_t end) {
      std::memmove(static_cast<std::byte*>(to.data) + begin, static_cast<const std::byte*>(from.data) + begin,
                   static_cast<size_t>(end - begin));
    });
    return;
  }
  const auto convert = kernels.copy[storage_of(to.dtype)][storage_of(from.dtype)];
  for_each_range(to.elements(), kRange,
                 [&](int64_t begin, int64_t end) { convert(at(to, begin), at(from, begin), end - begin); });
}

void add_elements(const Kernels& kernels, const View& to, const ConstView& from) {
  const auto sum = kernels.add[storage_of(to.dtype)][storage_of(from.dtype)];
  for_each_range(to.elements(), kRange,
                 [&](int64_t begin, int64_t end) { sum(at(to, begin), at(from, begin), end - begin); });
}

void fill_elements(const Kernels& kernels, const View& to, double value) {
  switch (to.dtype) {
    case DType::kF32:
      return fill_with(to, static_cast<float>(value));
    case DType::kBf16:
    case DType::kF16: {
      const float wide = static_cast<float>(value);
      uint16_t narrow = 0;
      kernels.copy[storage_of(to.dtype)][kF32](&narrow, &wide, 1);
      return fill_with(to, narrow);
    }
    case DType::kI32:
      return fill_with(to, static_cast<int32_t>(value));
    case DType::kI64:
      return fill_with(to, static_cast<int64_t>(value));
    case DType::kF64:
      return fill_with(to, value);
    case DType::kI8:
      return fill_with(to, static_cast<int8_t>(value));
    case DType::kU8:
      return fill_with(to, static_cast<uint8_t>(value));
  }
}

}  // namespace megalith::cpu
