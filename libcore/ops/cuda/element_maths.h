#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "libcore/ops/random/mask_key.h"
#include "libcore/ops/step_maths.h"  // MEGALITH_HD

/// What the CUDA kernels compute for one element: storage formats, activations, dropout bits, the optimizer.
/// nvcc compiles this for the device; the tests compile it for the host and compare it with the references of
/// the CPU backend. Needs no CUDA header.

namespace megalith::cuda {

// ---- storage: arithmetic is in fp32 ----------------------------------------------------------------------

struct Bf16 {
  uint16_t bits;
};
struct Half {
  uint16_t bits;
};

MEGALITH_HD float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
MEGALITH_HD uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

MEGALITH_HD float widen(float value) {
  return value;
}
MEGALITH_HD float widen(Bf16 value) {
  return float_of(static_cast<uint32_t>(value.bits) << 16);
}
MEGALITH_HD float widen(Half value) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t exponent = value.bits >> 10 & 31u, fraction = value.bits & 1023u;
  if (exponent == 0) return float_of(sign | bits_of(static_cast<float>(fraction) * 0x1p-24f));
  return float_of(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13);
#endif
}

/// Rounds to nearest, ties to even; a value that is too large becomes infinity.
template <class T>
MEGALITH_HD T narrow(float value);
template <>
MEGALITH_HD float narrow<float>(float value) {
  return value;
}
template <>
MEGALITH_HD Bf16 narrow<Bf16>(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return {static_cast<uint16_t>(bits >> 16 | 0x40)};  // NaN stays NaN
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
template <>
MEGALITH_HD Half narrow<Half>(float value) {
#if defined(__CUDA_ARCH__)
  Half half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(value));
  return half;
#else
  const uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffffu;
  uint32_t rounded = 0;
  if (size > 0x7f800000u)
    rounded = 0x7e00;
  else if (size >= 0x477ff000u)  // 65520 or more: halfway from the largest fp16 to the next power of two
    rounded = 0x7c00;
  else if (size < 0x38800000u)  // fp16 numbers below 2^-14 are multiples of 2^-24; adding 0.5 rounds to one
    rounded = bits_of(float_of(size) + 0.5f) - 0x3f000000u;
  else
    rounded = (size + 0xfff + (size >> 13 & 1) - 0x38000000u) >> 13;
  return {static_cast<uint16_t>(sign | rounded)};
#endif
}

// ---- activations

/// 1 / (1 + e^-x).
MEGALITH_HD float sigmoid(float x) {
  return 1.0f / (1.0f + expf(-x));
}
/// The integral (from minus infinity) and the density of the standard normal distribution.
MEGALITH_HD float normal_integral(float x) {
  return 0.5f * erfcf(-0.707106781f * x);
}
MEGALITH_HD float normal_density(float x) {
  return expf(-0.5f * x * x) * 0.398942280f;
}

constexpr float kTwoGeluRoot = 1.59576912f;  // 2 sqrt(2 / pi); (1 + tanh u) / 2 is sigmoid(2u)
constexpr float kGeluCube = 0.044715f;
constexpr float kQuickGeluSlope = 1.702f;

MEGALITH_HD float gelu_tanh(float x) {
  return x * sigmoid(kTwoGeluRoot * x * (1.0f + kGeluCube * x * x));
}
MEGALITH_HD float gelu_tanh_slope(float x) {
  const float square = x * x, s = sigmoid(kTwoGeluRoot * x * (1.0f + kGeluCube * square));
  return s + x * s * (1.0f - s) * kTwoGeluRoot * (1.0f + 3 * kGeluCube * square);
}
MEGALITH_HD float gelu_erf(float x) {
  return x * normal_integral(x);
}
MEGALITH_HD float gelu_erf_slope(float x) {
  return normal_integral(x) + x * normal_density(x);
}

MEGALITH_HD float silu(float x) {
  return x * sigmoid(x);
}
MEGALITH_HD float silu_slope(float x) {
  const float s = sigmoid(x);
  return s + x * s * (1.0f - s);
}

MEGALITH_HD float quick_gelu(float x) {
  return x * sigmoid(kQuickGeluSlope * x);
}
MEGALITH_HD float quick_gelu_slope(float x) {
  const float s = sigmoid(kQuickGeluSlope * x);
  return s + kQuickGeluSlope * x * s * (1.0f - s);
}

MEGALITH_HD float relu(float x) {
  return x <= 0.0f ? 0.0f : x;
}
MEGALITH_HD float relu_slope(float x) {
  return x <= 0.0f ? 0.0f : 1.0f;
}
MEGALITH_HD float squared_relu(float x) {
  return x <= 0.0f ? 0.0f : x * x;
}
MEGALITH_HD float squared_relu_slope(float x) {
  return x <= 0.0f ? 0.0f : 2.0f * x;
}

// ---- dropout

struct Words {
  uint32_t word[4];
};

/// Philox4x32-10, as in base/random.h.
MEGALITH_HD Words philox_words(Words counter, uint32_t key0, uint32_t key1) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter.word[0], b = uint64_t{0xCD9E8D57} * counter.word[2];
    counter = {{static_cast<uint32_t>(b >> 32) ^ counter.word[1] ^ key0, static_cast<uint32_t>(b),
                static_cast<uint32_t>(a >> 32) ^ counter.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// The random bits of columns 4 quad .. 4 quad + 3.
MEGALITH_HD Words mask_words(const MaskKey& key, int64_t sample, int64_t position, uint64_t quad) {
  const uint64_t number = static_cast<uint64_t>(sample);
  return philox_words({{static_cast<uint32_t>(quad), static_cast<uint32_t>(position), key.layer_site,
                        static_cast<uint32_t>(number)}},
                      key.seed, static_cast<uint32_t>(number >> 32));
}
/// The factor for an element with these random bits: 0 or 1 / (1 - p).
MEGALITH_HD float mask_factor(const MaskKey& key, uint32_t bits) {
  return bits <= key.last_kept ? key.scale : 0.0f;
}
MEGALITH_HD uint32_t mask_bits(const MaskKey& key, int64_t sample, int64_t position, uint64_t column) {
  const Words words = mask_words(key, sample, position, column / 4);
  const uint32_t even = column & 2 ? words.word[2] : words.word[0],
                 odd = column & 2 ? words.word[3] : words.word[1];
  // Does not index `words`, which would move them from registers to memory.
  return column & 1 ? odd : even;
}
MEGALITH_HD float mask_at(const MaskKey& key, int64_t sample, int64_t position, uint64_t column) {
  return mask_factor(key, mask_bits(key, sample, position, column));
}

// ---- optimizer

struct AdamElement {
  float master, m, v;
};
/// The operations are in the order of torch.optim.AdamW.
MEGALITH_HD AdamElement adam_step(const AdamRates& rates, AdamElement at, float grad) {
  const float g = grad * rates.grad_scale;
  const float m = at.m + (g - at.m) * rates.one_minus_beta1;
  const float v = at.v * rates.beta2 + g * g * rates.one_minus_beta2;
  const float root = sqrtf(v) / rates.root_bias2 + rates.eps;
  return {at.master * rates.decay - rates.step_size * (m / root), m, v};
}

}  // namespace megalith::cuda
