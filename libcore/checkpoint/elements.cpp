#include "libcore/checkpoint/elements.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "libcore/base/error.h"

namespace megalith {
namespace {

struct Bf16 {
  uint16_t bits;
  explicit Bf16(double value) : Bf16(static_cast<float>(value)) {}
  explicit Bf16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const uint32_t nearest_even = word + 0x7FFF + ((word >> 16) & 1);
    bits = static_cast<uint16_t>((std::isnan(value) ? word | 0x400000 : nearest_even) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

struct Fp16 {
  uint16_t bits;
  explicit Fp16(double value) : Fp16(static_cast<float>(value)) {}
  explicit Fp16(float value) {
    const auto word = std::bit_cast<uint32_t>(value);
    const auto sign = static_cast<uint16_t>((word >> 16) & 0x8000);
    bits = static_cast<uint16_t>(sign | magnitude(std::bit_cast<float>(word & 0x7FFFFFFF)));
  }
  explicit operator float() const {
    const bool negative = (bits & 0x8000) != 0;
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    float value = std::ldexp(static_cast<float>(fraction + (exponent == 0 ? 0 : 1024)),
                             (exponent == 0 ? 1 : exponent) - 25);
    if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
    return negative ? -value : value;
  }

 private:
  static uint16_t magnitude(float value) {
    if (std::isnan(value)) return 0x7E00;
    if (value >= 65520.0F) return 0x7C00;  // half way between the largest finite number and the next
    if (value < 0x1p-14F)  // subnormal: an integer multiple of 2^-24, rounded by the processor
      return static_cast<uint16_t>(std::nearbyint(value * 0x1p24F));
    const auto word = std::bit_cast<uint32_t>(value);
    const uint32_t rounded = word + 0xFFF + ((word >> 13) & 1);
    return static_cast<uint16_t>((rounded >> 13) - ((127 - 15) << 10));
  }
};

template <class To, class From>
void convert(void* to, const void* from, int64_t n) {
  auto* out = static_cast<To*>(to);
  const auto* in = static_cast<const From*>(from);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_arithmetic_v<From>)
      out[i] = static_cast<To>(in[i]);
    else
      out[i] = static_cast<To>(static_cast<float>(in[i]));
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

}  // namespace megalith
