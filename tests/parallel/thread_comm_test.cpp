#include "libcore/parallel/thread_comm.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend.h"

namespace megalith {
namespace {

using namespace std::chrono_literals;

// ---- elements as doubles
// -----------------------------------------------------------------------------------

/// Elements of one dtype in host memory, read and written as doubles.
class Tensor {
 public:
  Tensor(DType dtype, int64_t elements)
      : dtype_(dtype), elements_(elements), bytes_(static_cast<size_t>(elements) * size_of(dtype)) {}

  View view() { return {bytes_.data(), dtype_, {elements_}}; }
  View part(int i, int parts) {
    const int64_t n = elements_ / parts;
    return view().rows(i * n, (i + 1) * n);
  }
  void set(int64_t i, double value);
  double get(int64_t i) const;
  std::vector<double> all() const {
    std::vector<double> values;
    for (int64_t i = 0; i < elements_; ++i) values.push_back(get(i));
    return values;
  }
  bool operator==(const Tensor&) const = default;

 private:
  template <class T>
  T read(int64_t i) const {
    T value;
    std::memcpy(&value, bytes_.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void write(int64_t i, T value) {
    std::memcpy(bytes_.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }

  DType dtype_;
  int64_t elements_;
  std::vector<std::byte> bytes_;
};

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

/// The 16-bit float nearest to `value`, the even one of two; found by looking at all of them around it.
uint16_t nearest_of(double value, int exponent) {
  if (std::isnan(value)) return 0x7fff;
  const uint16_t infinity = static_cast<uint16_t>(((1 << exponent) - 1) << (15 - exponent));
  const double absolute = std::abs(value);
  uint16_t low = 0, high = infinity;  // positive values are in the order of their bits
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (value_of(middle, exponent) <= absolute ? low : high) = middle;
  }
  // Behind the greatest finite number rounding sees the next power of two, not infinity.
  const double above = high == infinity
                           ? 2 * value_of(static_cast<uint16_t>(infinity - (1 << (15 - exponent))), exponent)
                           : value_of(high, exponent);
  const double to_low = absolute - value_of(low, exponent), to_high = above - absolute;
  const uint16_t chosen = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(chosen | (std::signbit(value) ? 0x8000 : 0));
}

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

constexpr DType kReduced[] = {DType::kF32, DType::kBf16, DType::kF16, DType::kF64, DType::kI32, DType::kI64};

/// What rank `rank` has at place i: any number of the type's, the same in every run.
double element(DType dtype, int rank, int64_t i) {
  std::mt19937_64 random(static_cast<uint64_t>(rank) * 1000003 + static_cast<uint64_t>(i));
  const double value = std::normal_distribution<>(0, 3)(random);
  return dtype == DType::kI32 || dtype == DType::kI64 ? std::floor(value * 1e6) : value;
}

Tensor tensor_of(DType dtype, int rank, int64_t elements) {
  Tensor tensor(dtype, elements);
  for (int64_t i = 0; i < elements; ++i) tensor.set(i, element(dtype, rank, i));
  return tensor;
}

/// The reduction of `tensors`, element by element: 16-bit types are added in fp32, in rank order.
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

/// A rank's means: its backend, and both kinds of stream.
struct Rank {
  std::unique_ptr<Backend> backend = make_cpu_backend();
  Stream compute = backend->make_stream(), queue = backend->make_queue_stream();
};

// ---- collectives
// --------------------------------------------------------------------------------------------

class ThreadComm : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, ThreadComm, testing::Values(1, 2, 3, 4, 8),
                         [](const auto& instance) { return std::to_string(instance.param); });

TEST_P(ThreadComm, AllReduceGivesEveryRankTheSumInRankOrder) {
  for (const DType dtype : kReduced)
    for (const Reduce reduce : {Reduce::kSum, Reduce::kMax})
      for (const int64_t elements : {0, 1, 2, 63, 64, 65, 1000, 4097}) {
        std::vector<Tensor> inputs = tensors_of(dtype, GetParam(), elements), results = inputs;
        const Tensor wanted = reduced(inputs, dtype, reduce);
        run_thread_ranks(GetParam(), {}, [&](Communicator& world) {
          Rank rank;
          Tensor& mine = results[static_cast<size_t>(world.rank())];
          world.all_reduce(rank.compute, mine.view(), reduce);
        });
        for (const Tensor& result : results)
          EXPECT_EQ(result, wanted) << name_of(dtype) << " " << elements << " elements";
      }
}
}  // namespace
}  // namespace megalith
