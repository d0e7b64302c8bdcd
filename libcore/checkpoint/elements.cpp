#include "libcore/checkpoint/elements.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "libcore/base/error.h"
#include "libcore/tensor/kernels_elements.h"

namespace megalith {
namespace {

// bf16 and fp16 numbers as separate types.
struct Bf16 {
  uint16_t bits;
};
struct Fp16 {
  uint16_t bits;
};

uint16_t* bits_of(void* elements) {
  return static_cast<uint16_t*>(elements);
}
const uint16_t* bits_of(const void* elements) {
  return static_cast<const uint16_t*>(elements);
}

void widen(float* to, const Bf16* from, int64_t n) {
  element_kernels().f32_of_bf16(to, bits_of(from), n);
}
void widen(float* to, const Fp16* from, int64_t n) {
  element_kernels().f32_of_f16(to, bits_of(from), n);
}
void round(Bf16* to, const float* from, int64_t n) {
  element_kernels().bf16_of_f32(bits_of(to), from, n);
}
void round(Fp16* to, const float* from, int64_t n) {
  element_kernels().f16_of_f32(bits_of(to), from, n);
}

template <class T>
constexpr bool kShort = std::is_same_v<T, Bf16> || std::is_same_v<T, Fp16>;

// All types except fp32 and fp64 are converted through fp32, a few elements at a time. So a pair of 16-bit
// types needs no loop of its own.
template <class To, class From>
void convert(void* to, const void* from, int64_t n) {
  auto* out = static_cast<To*>(to);
  const auto* in = static_cast<const From*>(from);
  if constexpr (!kShort<To> && !kShort<From>) {
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<To>(in[i]);
  } else if constexpr (std::is_same_v<To, float>) {
    widen(out, in, n);
  } else if constexpr (std::is_same_v<From, float>) {
    round(out, in, n);
  } else {
    std::array<float, 1024> between;
    for (int64_t at = 0; at < n; at += std::ssize(between)) {
      const int64_t part = std::min<int64_t>(n - at, std::ssize(between));
      convert<float, From>(between.data(), in + at, part);
      convert<To, float>(out + at, between.data(), part);
    }
  }
}

template <class From>
void convert_from(void* to, DType to_type, const void* from, int64_t n) {
  switch (to_type) {
    case DType::kF32:
      return convert<float, From>(to, from, n);
    case DType::kF64:
      return convert<double, From>(to, from, n);
    case DType::kBf16:
      return convert<Bf16, From>(to, from, n);
    case DType::kF16:
      return convert<Fp16, From>(to, from, n);
    default:
      break;
  }
}

bool is_floating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBf16 || dtype == DType::kF16 || dtype == DType::kF64;
}

}  // namespace

bool convertible(DType from, DType to) {
  return from == to || (is_floating(from) && is_floating(to));
}

void convert_elements(void* to, DType to_type, const void* from, DType from_type, int64_t n) {
  if (!convertible(from_type, to_type))
    fail(ErrorKind::kInternal, "no conversion from ", name_of(from_type), " to ", name_of(to_type));
  if (from_type == to_type) {
    std::memcpy(to, from, static_cast<size_t>(n) * size_of(to_type));
    return;
  }
  switch (from_type) {
    case DType::kF32:
      return convert_from<float>(to, to_type, from, n);
    case DType::kF64:
      return convert_from<double>(to, to_type, from, n);
    case DType::kBf16:
      return convert_from<Bf16>(to, to_type, from, n);
    case DType::kF16:
      return convert_from<Fp16>(to, to_type, from, n);
    default:
      break;
  }
}

namespace {

/// Finds numbers that are NaN or infinite. Only these have all bits of `kExponent` set.
template <class Bits, Bits kExponent>
NotFinite find_exponent(const void* elements, int64_t n) {
  // elements per block; only a block with NaN or infinity is searched element by element
  constexpr int64_t kAtOnce = 4096;
  const auto bits_at = [elements](int64_t i) {
    Bits bits;
    std::memcpy(&bits, static_cast<const std::byte*>(elements) + i * static_cast<int64_t>(sizeof bits),
                sizeof bits);
    return bits;
  };
  NotFinite found;
  for (int64_t at = 0; at < n; at += kAtOnce) {
    const int64_t end = std::min(n, at + kAtOnce);
    Bits any = 0;  // no branch in the loop, so that compilers vectorize it
    for (int64_t i = at; i < end; ++i)
      any = static_cast<Bits>(any | ((bits_at(i) & kExponent) == kExponent ? ~Bits{0} : Bits{0}));
    for (int64_t i = at; any != 0 && i < end; ++i)
      if ((bits_at(i) & kExponent) == kExponent && found.count++ == 0) found.first = i;
  }
  return found;
}

}  // namespace

NotFinite find_not_finite(const void* elements, DType type, int64_t n) {
  switch (type) {
    case DType::kF64:
      return find_exponent<uint64_t, 0x7FF0'0000'0000'0000>(elements, n);
    case DType::kF32:
      return find_exponent<uint32_t, 0x7F80'0000>(elements, n);
    case DType::kBf16:
      return find_exponent<uint16_t, 0x7F80>(elements, n);
    case DType::kF16:
      return find_exponent<uint16_t, 0x7C00>(elements, n);
    default:
      return {};
  }
}

}  // namespace megalith
