#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <numbers>

#include "libcore/ops/random/normal_numbers.h"

/// Generates normal numbers, for files that are compiled for one instruction set. Each step is a loop over
/// the lanes with plain double-precision operations, none of them fused, which the compiler vectorizes; so
/// the numbers have the same bits on every processor. (std::log and std::sin give different bits in different
/// C libraries; with them, 124M parameters took 1.3 s on one core, against 0.25 s here with AVX-512.) This
/// code calls no inline function from another header: the linker keeps one copy of such a function, which
/// might be one that this processor cannot run.
namespace megalith {
namespace {

inline constexpr int kLanes = kNormalLanes;
inline constexpr double kTwo52 = 0x1p52;

inline double double_of(uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}
inline uint64_t bits_of(double x) {
  return __builtin_bit_cast(uint64_t, x);
}
/// Converts x < 2^52 exactly. Every processor has vector instructions for these operations, unlike for a
/// conversion, so that the loop around them is vectorized.
inline double to_double(uint64_t x) {
  return double_of(x | bits_of(kTwo52)) - kTwo52;
}

/// philox() of base/random.h in each lane.
inline void philox_lanes(uint32_t (&words)[4][kLanes], uint32_t key0, uint32_t key1) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round, key0 += kWeyl0, key1 += kWeyl1)
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t a = kMultiplier0 * words[0][i], b = kMultiplier1 * words[2][i];
      words[0][i] = static_cast<uint32_t>(b >> 32) ^ words[1][i] ^ key0;
      words[1][i] = static_cast<uint32_t>(b);
      words[2][i] = static_cast<uint32_t>(a >> 32) ^ words[3][i] ^ key1;
      words[3][i] = static_cast<uint32_t>(a);
    }
}

/// log of u in [2^-32, 1]: u = 2^e m with m in [sqrt(1/2), sqrt(2)), and log m = 2 artanh((m - 1) / (m + 1))
/// by the series of artanh; the first term left out is below 2^-55 of the sum.
inline double log_of(double u) {
  const uint64_t root_half = bits_of(std::numbers::sqrt2 / 2);
  // A mantissa of sqrt(2) or more carries into the exponent.
  const uint64_t shifted = bits_of(u) - root_half + bits_of(1.0);
  constexpr uint64_t kMantissa = (uint64_t{1} << 52) - 1;
  const double e = to_double(shifted >> 52) - 1023;
  const double m = double_of((shifted & kMantissa) + root_half);
  const double s = (m - 1) / (m + 1);
  const double z = s * s;
  double sum = 1.0 / 19;
  for (int k = 17; k >= 3; k -= 2) sum = sum * z + 1.0 / k;
  return e * std::numbers::ln2 + 2 * (s + s * z * sum);
}

/// sin and cos of t in [-pi/4, pi/4], by their series.
inline double sin_of(double t) {
  const double z = t * t;
  double sum = 1;
  for (int k = 16; k >= 2; k -= 2) sum = 1 - sum * z * (1.0 / (k * (k + 1)));
  return t * sum;
}
inline double cos_of(double t) {
  const double z = t * t;
  double sum = 1;
  for (int k = 17; k >= 1; k -= 2) sum = 1 - sum * z * (1.0 / (k * (k + 1)));
  return sum;
}

/// Box-Muller: turns two words of random bits into two independent standard normal numbers.
inline void normal_pairs(const uint32_t (&first)[kLanes], const uint32_t (&second)[kLanes],
                         double (&a)[kLanes], double (&b)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    const double u = (to_double(first[i]) + 1) * 0x1p-32;  // in (0, 1]
    const double radius = __builtin_sqrt(-2 * log_of(u));
    // The angle is second / 2^32 of a turn. It is split into the nearest quarter of a turn and a rest, so
    // that the series of sine and cosine are needed only up to an eighth of a turn.
    const uint32_t quarter = (second[i] + (uint32_t{1} << 29)) >> 30;
    const auto rest = static_cast<int32_t>(second[i] - (quarter << 30));
    const double t = rest * (2 * std::numbers::pi * 0x1p-32);
    const double sine = sin_of(t), cosine = cos_of(t);
    const bool odd = (quarter & 1) != 0;
    // The cosine is negative in the second and third quarter of a turn, the sine in the third and fourth.
    const uint64_t minus_cos = static_cast<uint64_t>((quarter + 1) & 2) << 62;
    const uint64_t minus_sin = static_cast<uint64_t>(quarter & 2) << 62;
    a[i] = radius * double_of(bits_of(odd ? sine : cosine) ^ minus_cos);
    b[i] = radius * double_of(bits_of(odd ? cosine : sine) ^ minus_sin);
  }
}

inline void make_normal_blocks(const NormalNumbers& of, uint64_t first_block, float* out) {
  uint32_t words[4][kLanes];
  for (int i = 0; i < kLanes; ++i) {
    const uint64_t block = first_block + static_cast<uint64_t>(i);
    words[0][i] = static_cast<uint32_t>(block);
    words[1][i] = static_cast<uint32_t>(block >> 32);
    words[2][i] = static_cast<uint32_t>(of.stream >> 32);
    words[3][i] = static_cast<uint32_t>(of.seed >> 32);
  }
  philox_lanes(words, static_cast<uint32_t>(of.seed), static_cast<uint32_t>(of.stream));
  double numbers[4][kLanes];
  normal_pairs(words[0], words[1], numbers[0], numbers[1]);
  normal_pairs(words[2], words[3], numbers[2], numbers[3]);
  for (int i = 0; i < kLanes; ++i)
    for (int k = 0; k < 4; ++k) out[4 * i + k] = static_cast<float>(of.std * numbers[k][i]);
}

}  // namespace
}  // namespace megalith
