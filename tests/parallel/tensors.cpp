#include "tests/parallel/tensors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace megalith {
namespace {

/// The value of a 16-bit float of `exponent` bits, by IEEE 754.
double value_of(uint16_t bits, int exponent) {
  const int fraction = 15 - exponent, bias = (1 << (exponent - 1)) - 1;
  const int power = bits >> fraction & ((1 << exponent) - 1), steps = bits & ((1 << fraction) - 1);
  const double sign = bits >> 15 ? -1 : 1;
  if (power == (1 << exponent) - 1)
    return steps != 0 ? std::numeric_limits<double>::quiet_NaN()
                      : sign * std::numeric_limits<double>::infinity();
  if (power == 0) return sign * std::ldexp(steps, 1 - bias - fraction);
  return sign * std::ldexp((1 << fraction) + steps, power - bias - fraction);
}

/// Finds, by bisection, the 16-bit float nearest to `value`; if two are equally near, the even one.
uint16_t nearest_of(double value, int exponent) {
  if (std::isnan(value)) return 0x7fff;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent) - 1) << (15 - exponent));
  const double absolute = std::abs(value);
  uint16_t low = 0, high = infinity;  // positive values are ordered like their bits
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (value_of(middle, exponent) <= absolute ? low : high) = middle;
  }
  // For rounding, the value after the greatest finite number is the next power of two, not infinity.
  const double above = high == infinity
                           ? 2 * value_of(static_cast<uint16_t>(infinity - (1 << (15 - exponent))), exponent)
                           : value_of(high, exponent);
  const double to_low = absolute - value_of(low, exponent), to_high = above - absolute;
  const uint16_t chosen = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

void Tensor::set(int64_t i, double value) {
  switch (dtype_) {
    case DType::kF32:
      return write(i, static_cast<float>(value));
    case DType::kF64:
      return write(i, value);
    case DType::kBf16:
      return write(i, nearest_of(value, 8));
    case DType::kF16:
      return write(i, nearest_of(value, 5));
    case DType::kI32:
      return write(i, static_cast<int32_t>(value));
    case DType::kI64:
      return write(i, static_cast<int64_t>(value));
    default:
      return write(i, static_cast<uint8_t>(value));
  }
}

double Tensor::get(int64_t i) const {
  switch (dtype_) {
    case DType::kF32:
      return read<float>(i);
    case DType::kF64:
      return read<double>(i);
    case DType::kBf16:
      return value_of(read<uint16_t>(i), 8);
    case DType::kF16:
      return value_of(read<uint16_t>(i), 5);
    case DType::kI32:
      return read<int32_t>(i);
    case DType::kI64:
      return static_cast<double>(read<int64_t>(i));
    default:
      return read<uint8_t>(i);
  }
}

double element(DType dtype, int rank, int64_t i) {
  std::minstd_rand random(static_cast<uint32_t>(rank) * 1000003 + static_cast<uint32_t>(i));
  random.discard(2);
  const double value = static_cast<double>(random()) / 0x1p29 - 2;
  return dtype == DType::kI32 || dtype == DType::kI64 ? std::floor(value * 1e6) : value;
}

Tensor tensor_of(DType dtype, int rank, int64_t elements) {
  Tensor tensor(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) tensor.set(i, element(dtype, rank, i));
  return tensor;
}

Tensor reduced(std::vector<Tensor>& tensors, DType dtype, Reduce reduce) {
  const int64_t elements = tensors[0].view().elements();
  Tensor result(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) {
    double total = tensors[0].get(i);
    for (size_t rank = 1; rank < tensors.size(); ++rank) {
      const double next = tensors[rank].get(i);
      total = reduce == Reduce::kMax ? std::max(total, next) : total + next;
      if (size_of(dtype) == 2 || dtype == DType::kF32) total = static_cast<float>(total);
    }
    result.set(i, total);
  }
  return result;
}

std::vector<Tensor> tensors_of(DType dtype, int ranks, int64_t elements) {
  std::vector<Tensor> tensors;
  for (int rank = 0; rank < ranks; ++rank) tensors.push_back(tensor_of(dtype, rank, elements));
  return tensors;
}

}  // namespace megalith
