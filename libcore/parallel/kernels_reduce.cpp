#include "libcore/parallel/kernels_reduce.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "libcore/base/error.h"
#include "libcore/tensor/kernels_elements.h"

namespace megalith {
namespace {

constexpr int64_t kBlock = 2048;  // elements per block, so that two blocks of sums stay in the nearest cache

template <class T>
T sum_of(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <class T>
void combine(T* total, const T* next, int64_t n, Reduce reduce) {
  if (reduce == Reduce::kSum) {
    for (int64_t i = 0; i < n; ++i) total[i] = sum_of(total[i], next[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) total[i] = next[i] > total[i] || next[i] != next[i] ? next[i] : total[i];
  }
}

/// Element types that are added without conversion.
template <class T>
struct Plain {
  using Sum = T;
  static const T* load(T*, const std::byte* from, int64_t) { return reinterpret_cast<const T*>(from); }
  static void store(std::byte* to, const T* total, int64_t n) {
    std::memcpy(to, total, static_cast<size_t>(n) * sizeof(T));
  }
};

struct Bf16 {
  using Sum = float;
  static const float* load(float* wide, const std::byte* from, int64_t n) {
    element_kernels().f32_of_bf16(wide, reinterpret_cast<const uint16_t*>(from), n);
    return wide;
  }
  static void store(std::byte* to, const float* total, int64_t n) {
    element_kernels().bf16_of_f32(reinterpret_cast<uint16_t*>(to), total, n);
  }
};

struct Fp16 {
  using Sum = float;
  static const float* load(float* wide, const std::byte* from, int64_t n) {
    element_kernels().f32_of_f16(wide, reinterpret_cast<const uint16_t*>(from), n);
    return wide;
  }
  static void store(std::byte* to, const float* total, int64_t n) {
    element_kernels().f16_of_f32(reinterpret_cast<uint16_t*>(to), total, n);
  }
};

template <class Element>
void reduce_blocks(const SliceReduction& slice) {
  using Sum = typename Element::Sum;
  alignas(64) Sum total[kBlock], wide[kBlock];
  for (int64_t begin = 0; begin < slice.elements; begin += kBlock) {
    const int64_t n = std::min(kBlock, slice.elements - begin);
    const size_t offset = static_cast<size_t>(begin) * size_of(slice.dtype);
    std::copy_n(Element::load(wide, slice.from[0] + offset, n), n, total);
    for (size_t rank = 1; rank < slice.from.size(); ++rank)
      combine(total, Element::load(wide, slice.from[rank] + offset, n), n, slice.reduce);
    std::byte* const first = slice.to[0] + offset;
    Element::store(first, total, n);
    for (size_t i = 1; i < slice.to.size(); ++i)
      std::memcpy(slice.to[i] + offset, first, static_cast<size_t>(n) * size_of(slice.dtype));
  }
}

using Reducer = void (*)(const SliceReduction&);

/// Null for a type that cannot be reduced.
Reducer reducer_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return reduce_blocks<Plain<float>>;
    case DType::kBf16:
      return reduce_blocks<Bf16>;
    case DType::kF16:
      return reduce_blocks<Fp16>;
    case DType::kF64:
      return reduce_blocks<Plain<double>>;
    case DType::kI32:
      return reduce_blocks<Plain<int32_t>>;
    case DType::kI64:
      return reduce_blocks<Plain<int64_t>>;
    case DType::kU8:
    case DType::kI8:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

bool can_reduce(DType dtype) {
  return reducer_of(dtype) != nullptr;
}

void reduce_slice(const SliceReduction& slice) {
  if (slice.from.size() > 1) return reducer_of(slice.dtype)(slice);
  const size_t bytes = static_cast<size_t>(slice.elements) * size_of(slice.dtype);
  for (std::byte* const to : slice.to)
    if (to != slice.from[0] && bytes != 0) std::memcpy(to, slice.from[0], bytes);
}

}  // namespace megalith
