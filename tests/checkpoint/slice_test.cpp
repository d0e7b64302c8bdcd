#include "libcore/checkpoint/slice.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/elements.h"

namespace megalith {
namespace {

class Random {
 public:
  int64_t operator()(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }

 private:
  std::mt19937 engine_{11};
};

// The place of element (i, j, k) in a dense tensor.
size_t place(const Shape& s, int64_t i, int64_t j, int64_t k) {
  return static_cast<size_t>((i * s[1] + j) * s[2] + k);
}

// Against a triple loop, with the parts of every size.
TEST(CopyBlock, EqualsTheNaiveLoop) {
  Random random;
  for (int round = 0; round < 300; ++round) {
    Shape from{0, 0, 0}, to{0, 0, 0}, extent{0, 0, 0}, from_at{0, 0, 0}, to_at{0, 0, 0};
    for (int axis = 0; axis < 3; ++axis) {
      from[axis] = random(1, 6);
      extent[axis] = random(1, from[axis]);
      to[axis] = random(extent[axis], 7);
      from_at[axis] = random(0, from[axis] - extent[axis]);
      to_at[axis] = random(0, to[axis] - extent[axis]);
    }
    std::vector<float> source(static_cast<size_t>(from.elements()));
    std::vector<double> want(static_cast<size_t>(to.elements()), -1), got = want;
    std::iota(source.begin(), source.end(), 0.F);
    for (int64_t i = 0; i < extent[0]; ++i)
      for (int64_t j = 0; j < extent[1]; ++j)
        for (int64_t k = 0; k < extent[2]; ++k)
          want[place(to, to_at[0] + i, to_at[1] + j, to_at[2] + k)] =
              source[place(from, from_at[0] + i, from_at[1] + j, from_at[2] + k)];
    int parts = 0;
    const int64_t greatest = random(1, extent.elements());
    copy_in_parts(
        {{source.data(), DType::kF32, from}, from_at, {got.data(), DType::kF64, to}, to_at, extent},
        [&] { ++parts; }, greatest);
    EXPECT_EQ(got, want);
    EXPECT_GE(parts * std::max(greatest, extent[2]), extent.elements());
  }
}

TEST(Overlap, IsTheCommonPart) {
  const Overlap meet = overlap({1, 2}, {3, 4}, {2, 0}, {5, 3});
  EXPECT_EQ(meet.offset, (Shape{2, 2}));
  EXPECT_EQ(meet.extent, (Shape{2, 1}));
  EXPECT_EQ(overlap({0, 0}, {2, 2}, {2, 0}, {2, 2}).extent.elements(), 0);
}

TEST(Fits, RefusesWhatWouldOverflow) {
  EXPECT_TRUE(fits({4, 5}, {1, 0}, {3, 5}));
  EXPECT_FALSE(fits({4, 5}, {2, 0}, {3, 5}));
  EXPECT_FALSE(fits({4, 5}, {-1, 0}, {3, 5}));
  EXPECT_FALSE(fits({4, 5}, {INT64_MAX, 0}, {1, 1}));
  EXPECT_FALSE(fits({4, 5}, {1, 0}, {INT64_MAX, 5}));
  EXPECT_FALSE(fits({4, 5}, {1}, {3}));
}

template <class To, class From>
To converted(From value, DType from, DType to) {
  To out{};
  convert_elements(&out, to, &value, from, 1);
  return out;
}

struct Narrow {
  DType dtype;
  uint16_t greatest;  // bits of the largest finite number
};

// Every value survives; every point half way between neighbours goes to the even one, points beside it to the
// nearer.
TEST(ConvertElements, RoundsToNearestEven) {
  for (const auto& [dtype, greatest] : {Narrow{DType::kF16, 0x7BFF}, Narrow{DType::kBf16, 0x7F7F}}) {
    const auto wide = [d = dtype](uint16_t bits) { return converted<float>(bits, d, DType::kF32); };
    const auto narrow = [d = dtype](float value) { return converted<uint16_t>(value, DType::kF32, d); };
    for (uint16_t bits = 0; bits < greatest; ++bits) {
      const auto next = static_cast<uint16_t>(bits + 1);
      ASSERT_EQ(narrow(wide(bits)), bits);
      ASSERT_EQ(narrow(-wide(bits)), bits | 0x8000);
      const double middle = (double{wide(bits)} + double{wide(next)}) / 2;
      const auto half = static_cast<float>(middle);
      if (double{half} != middle) continue;  // below the smallest float
      ASSERT_EQ(narrow(half), bits % 2 == 0 ? bits : next) << name_of(dtype) << bits;
      ASSERT_EQ(narrow(std::nextafter(half, 0.F)), bits);
      ASSERT_EQ(narrow(std::nextafter(half, INFINITY)), next);
    }
    const uint16_t infinite = static_cast<uint16_t>(greatest + 1);
    EXPECT_EQ(narrow(INFINITY), infinite);
    EXPECT_EQ(narrow(std::numeric_limits<float>::max()), infinite);
    EXPECT_TRUE(std::isinf(wide(infinite)));
    EXPECT_TRUE(std::isnan(wide(narrow(NAN))));
    EXPECT_TRUE(std::isnan(wide(static_cast<uint16_t>(infinite + 1))));
  }
  EXPECT_EQ(converted<float>(uint16_t{0x3C00}, DType::kF16, DType::kF32), 1.F);
  EXPECT_EQ(converted<float>(uint16_t{0x0001}, DType::kF16, DType::kF32), 0x1p-24F);
  EXPECT_EQ(converted<float>(uint16_t{0x3F80}, DType::kBf16, DType::kF32), 1.F);
}

TEST(ConvertElements, KnowsWhatItCannotDo) {
  EXPECT_TRUE(convertible(DType::kI64, DType::kI64));
  EXPECT_FALSE(convertible(DType::kI64, DType::kF32));
  EXPECT_FALSE(convertible(DType::kF32, DType::kU8));
  EXPECT_THROW(converted<float>(int64_t{1}, DType::kI64, DType::kF32), Error);
}

}  // namespace
}  // namespace megalith
