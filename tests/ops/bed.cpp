#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/ops/cases.h"

namespace megalith::test {
namespace {

/// The bits of a bf16, by the definition: a float rounded to nearest even without its low 16 bits.
uint16_t to_bf16(double value) {
  const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint32_t low = bits & 0xffff, high = bits >> 16;
  return static_cast<uint16_t>(high + (low > 0x8000 || (low == 0x8000 && (high & 1)) ? 1 : 0));
}
double from_bf16(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

/// The bits of an IEEE half, by the definition: rounded to nearest even in steps of 2^-10 of the next lower
/// power of two. For NaN and finite values in fp16's range.
uint16_t to_half(double value) {
  if (std::isnan(value)) return 0x7e00;
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = value == 0 ? -14 : std::max(exponent - 1, -14);
  const auto steps = static_cast<int>(std::nearbyint(std::abs(std::ldexp(value, 10 - exponent))));
  return static_cast<uint16_t>(sign + ((exponent + 14) << 10) + steps);  // 1024 steps add 1 to the exponent
}
double from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, steps = bits & 1023;
  const double value = exponent == 0 ? std::ldexp(steps, -24) : std::ldexp(1024 + steps, exponent - 25);
  if (exponent == 31) return std::numeric_limits<double>::quiet_NaN();
  return bits >> 15 ? -value : value;
}

template <class T>
void write(void* to, size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(to) + i * sizeof(T), &value, sizeof value);
}
template <class T>
T read(const void* from, size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + i * sizeof(T), sizeof value);
  return value;
}

void encode(DType dtype, void* to, size_t i, double value) {
  switch (dtype) {
    case DType::kF32:
      return write(to, i, static_cast<float>(value));
    case DType::kF64:
      return write(to, i, value);
    case DType::kBf16:
      return write(to, i, to_bf16(value));
    case DType::kF16:
      return write(to, i, to_half(value));
    case DType::kI8:
      return write(to, i, static_cast<int8_t>(value));
    case DType::kI32:
      return write(to, i, static_cast<int32_t>(value));
    case DType::kI64:
      return write(to, i, static_cast<int64_t>(value));
    default:
      fail(ErrorKind::kInternal, "test bed: no ", name_of(dtype));
  }
}

double decode(DType dtype, const void* from, size_t i) {
  switch (dtype) {
    case DType::kF32:
      return read<float>(from, i);
    case DType::kF64:
      return read<double>(from, i);
    case DType::kBf16:
      return from_bf16(read<uint16_t>(from, i));
    case DType::kF16:
      return from_half(read<uint16_t>(from, i));
    case DType::kI8:
      return read<int8_t>(from, i);
    case DType::kI32:
      return read<int32_t>(from, i);
    case DType::kI64:
      return static_cast<double>(read<int64_t>(from, i));
    default:
      fail(ErrorKind::kInternal, "test bed: no ", name_of(dtype));
  }
}

}  // namespace

View Bed::put(DType dtype, Shape shape, Values& values) {
  View view{nullptr, dtype, shape};
  if (static_cast<size_t>(view.elements()) != values.size())
    fail(ErrorKind::kInternal, "test bed: ", values.size(), " values for ", shape);
  const size_t shift = odd_ ? size_of(dtype) : 0;
  blocks_.push_back(stream_.backend().allocate(shift + view.bytes()));
  view.data = static_cast<std::byte*>(blocks_.back().data.get()) + shift;
  std::vector<std::byte> bytes(view.bytes());
  for (size_t i = 0; i < values.size(); ++i) {
    encode(dtype, bytes.data(), i, values[i]);
    values[i] = decode(dtype, bytes.data(), i);
  }
  stream_.from_host(view, bytes.data());
  return view;
}

View Bed::empty(DType dtype, Shape shape) {
  const bool is_integer = dtype == DType::kI32 || dtype == DType::kI64 || dtype == DType::kI8;
  return put(dtype, shape,
             Values(static_cast<size_t>(shape.elements()),
                    is_integer ? -1.0 : std::numeric_limits<double>::quiet_NaN()));
}

Values Bed::get(const ConstView& view) {
  std::vector<std::byte> bytes(view.bytes());
  stream_.to_host(bytes.data(), view);
  Values values(static_cast<size_t>(view.elements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = decode(view.dtype, bytes.data(), i);
  return values;
}

Values random_values(int64_t n, uint32_t seed, double scale) {
  std::mt19937 engine(seed);
  Values values(static_cast<size_t>(n));
  for (double& value : values) {  // Box-Muller: std::normal_distribution differs between libraries
    const double u = (static_cast<double>(engine()) + 1) / 4294967297.0,
                 v = static_cast<double>(engine()) / 4294967296.0;
    value = scale * std::sqrt(-2 * std::log(u)) * std::cos(6.283185307179586 * v);
  }
  return values;
}

std::string disagreement(const Outcome& outcome) {
  const bool whole = outcome.places.empty();
  if (whole && outcome.got.size() != outcome.want.size())
    return concat(outcome.what, ": ", outcome.got.size(), " elements, not ", outcome.want.size());
  double square = 0, worst = 0;
  for (const double want : outcome.want) square += want * want;
  const double count = std::max<double>(1, static_cast<double>(outcome.want.size()));
  const double size = std::sqrt(square / count) + outcome.size;
  std::string words;
  for (size_t i = 0; i < outcome.want.size(); ++i) {
    const size_t place = whole ? i : outcome.places[i];
    const double got = outcome.got.at(place), want = outcome.want[i];
    const double error = got == want ? 0 : std::abs(got - want) / (std::abs(want) + size);
    if (error <= worst) continue;  // false for NaN
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    if (worst > outcome.tolerance)
      words = concat(outcome.what, "[", place, "] is ", got, ", not ", want, "; relative ", worst, " over ",
                     outcome.tolerance);
  }
  return words;
}

}  // namespace megalith::test
