#include "libcore/checkpoint/slice.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/checkpoint/elements.h"
#include "libcore/io/files/file.h"
#include "libcore/tensor/kernels_elements.h"
#include "tests/support/files.h"
#include "tests/support/isa.h"

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

// The index of element (i, j, k) in a dense tensor.
size_t place(const Shape& s, int64_t i, int64_t j, int64_t k) {
  return static_cast<size_t>((i * s[1] + j) * s[2] + k);
}

// Reads rows in all three ways: with a call for each row, with a call for several rows and the bytes between
// them, and in parts through the buffer.
TEST(ReadBlock, ReadsRowsOfEveryLength) {
  const test::TempDir dir;
  constexpr int64_t kRows = 5;
  for (const int64_t columns : {3, 700, 3000, 20'000, 300'000}) {
    std::vector<float> source(static_cast<size_t>(kRows * columns));
    std::iota(source.begin(), source.end(), 0.F);
    write_file(dir / "f", {reinterpret_cast<const char*>(source.data()), source.size() * sizeof(float)});
    const ReadableFile file(dir / "f");
    for (const int64_t n : {columns, columns - 1, columns / 2, columns / 3}) {
      std::vector<float> same(static_cast<size_t>(3 * n));
      std::vector<double> other(same.size());
      const FileBlock from{file, 0, DType::kF32, {kRows, columns}};
      read_block(from, {1, 1}, {same.data(), DType::kF32, {3, n - 1}}, {0, 0}, {3, n - 1});
      read_block(from, {1, 1}, {other.data(), DType::kF64, {3, n - 1}}, {0, 0}, {3, n - 1});
      for (int64_t row = 0; row < 3; ++row)
        for (int64_t i = 0; i < n - 1; ++i) {
          const auto at = static_cast<size_t>(row * (n - 1) + i);
          ASSERT_EQ(same[at], static_cast<float>((row + 1) * columns + 1 + i)) << columns << ' ' << n;
          ASSERT_EQ(other[at], same[at]);
        }
    }
  }
}

// Copies blocks from memory and from a file, with rows of all lengths, and compares them with a triple loop.
TEST(CopyBlock, EqualsTheNaiveLoop) {
  const test::TempDir dir;
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
    const View out{got.data(), DType::kF64, to};
    copy_block({source.data(), DType::kF32, from}, from_at, out, to_at, extent);
    EXPECT_EQ(got, want);
    std::fill(got.begin(), got.end(), -1);
    const std::string head = "head";
    write_file(dir / "f", head + std::string(reinterpret_cast<const char*>(source.data()),
                                             source.size() * sizeof(float)));
    const ReadableFile file(dir / "f");
    read_block({file, head.size(), DType::kF32, from}, from_at, out, to_at, extent);
    EXPECT_EQ(got, want);
  }
}

// The expected bits follow from the definitions of the formats: fp16 is IEEE 754 binary16, bf16 the upper
// half of binary32.
class ElementKernelsIsa : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(Isas, ElementKernelsIsa, testing::ValuesIn(test::runnable_isas()),
                         [](const auto& isa) { return std::string(name(isa.param)); });

TEST_P(ElementKernelsIsa, AgreeWithTheFormatsOnEveryShortAndOnRoundingsToThem) {
  const ElementKernels& kernels = element_kernels(GetParam());
  std::vector<uint16_t> all(65536);
  std::iota(all.begin(), all.end(), uint16_t{0});
  std::vector<float> half(all.size()), brain(all.size());
  kernels.f32_of_f16(half.data(), all.data(), std::ssize(all));
  kernels.f32_of_bf16(brain.data(), all.data(), std::ssize(all));
  for (uint32_t bits = 0; bits < all.size(); ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent < 31)
      ASSERT_EQ(half[bits], static_cast<float>(bits & 0x8000 ? -magnitude : magnitude)) << bits;
    else
      ASSERT_TRUE(fraction ? std::isnan(half[bits]) : std::isinf(half[bits])) << bits;
    ASSERT_EQ(std::signbit(half[bits]), (bits & 0x8000) != 0);
    ASSERT_EQ(std::bit_cast<uint32_t>(brain[bits]), bits << 16);
  }
  // Each 16-bit number, the midpoint between it and the next number, and the two floats next to that
  // midpoint.
  std::vector<float> values;
  std::vector<uint16_t> want;
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const double low = half[bits], high = bits == 0x7BFF ? 65536 : half[bits + 1];
    const auto middle = static_cast<float>((low + high) / 2);
    const auto up = static_cast<uint16_t>(bits + 1), even = static_cast<uint16_t>(bits + (bits & 1));
    for (const auto& [value, rounded] : {std::pair{static_cast<float>(low), static_cast<uint16_t>(bits)},
                                         {middle, even},
                                         {std::nextafter(middle, 0.F), static_cast<uint16_t>(bits)},
                                         {std::nextafter(middle, 1e9F), up}}) {
      values.push_back(value);
      want.push_back(rounded);
      values.push_back(-value);
      want.push_back(rounded | 0x8000);
    }
  }
  values.insert(values.end(), {INFINITY, 1e30F, NAN});
  want.insert(want.end(), {0x7C00, 0x7C00, 0x7E00});
  std::vector<uint16_t> got(values.size());
  kernels.f16_of_f32(got.data(), values.data(), std::ssize(values));
  EXPECT_EQ(got, want);
  values.clear();
  want.clear();
  for (uint32_t bits = 0; bits < 0x7F80; ++bits)
    for (const auto& [low, rounded] :
         {std::pair{0x0000U, bits}, {0x7FFFU, bits}, {0x8000U, bits + (bits & 1)}, {0x8001U, bits + 1}}) {
      values.push_back(std::bit_cast<float>(bits << 16 | low));
      want.push_back(static_cast<uint16_t>(rounded));
    }
  got.resize(values.size());
  kernels.bf16_of_f32(got.data(), values.data(), std::ssize(values));
  EXPECT_EQ(got, want);
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

// Every 16-bit value must survive the conversion to fp32 and back. A midpoint between two neighbours is
// rounded to the even one, and the floats next to the midpoint to the nearer neighbour.
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
      if (double{half} != middle) continue;  // the midpoint is too small for a float
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

TEST(MatrixBlock, HasInCommonWhatBothHold) {
  const auto expect = [](const MatrixBlock& a, const MatrixBlock& b, const MatrixBlock& both) {
    for (const MatrixBlock& c : {common(a, b), common(b, a)}) {
      EXPECT_EQ(c.rows, both.rows);
      EXPECT_EQ(c.columns, both.columns);
      if (both.rows > 0) {
        EXPECT_EQ(c.row, both.row);
      }
      if (both.columns > 0) {
        EXPECT_EQ(c.column, both.column);
      }
    }
  };
  expect({2, 5, 0, 8}, {4, 9, 6, 8}, {4, 3, 6, 2});
  expect({2, 5, 0, 8}, {3, 1, 2, 3}, {3, 1, 2, 3});
  expect({2, 5, 0, 8}, {7, 2, 0, 8}, {0, 0, 0, 8});  // below the first block
  expect({2, 5, 0, 8}, {2, 5, 8, 1}, {2, 5, 0, 0});  // beside the first block
  expect({2, 5}, {0, 3}, {2, 1});                    // blocks of a vector
}

TEST(FindNotFinite, FindsTheFirstAndCountsAll) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kBf16, DType::kF16})
    for (const size_t n : {size_t{1}, size_t{17}, size_t{4097}, size_t{9000}}) {
      std::vector<float> values(n, -6e4F);  // near the most negative number of fp16
      values[n / 2] = 0x1p-149F;
      const auto find = [&] {
        std::vector<std::byte> stored(n * size_of(type));
        convert_elements(stored.data(), type, values.data(), DType::kF32, static_cast<int64_t>(n));
        return find_not_finite(stored.data(), type, static_cast<int64_t>(n));
      };
      EXPECT_EQ(find().count, 0) << name_of(type) << ' ' << n;
      for (const float sick : {NAN, -NAN, INFINITY, -INFINITY})
        for (const size_t first : {size_t{0}, n / 2, n - 1}) {
          const std::vector<float> sound = values;
          values[first] = values[n - 1] = sick;
          const NotFinite found = find();
          EXPECT_EQ(found.first, static_cast<int64_t>(first)) << name_of(type) << ' ' << n;
          EXPECT_EQ(found.count, first == n - 1 ? 1 : 2) << name_of(type) << ' ' << n;
          values = sound;
        }
    }
  const int64_t whole = -1;
  EXPECT_EQ(find_not_finite(&whole, DType::kI64, 1).count, 0);
}

TEST(ConvertElements, KnowsWhatItCannotDo) {
  EXPECT_TRUE(convertible(DType::kI64, DType::kI64));
  EXPECT_FALSE(convertible(DType::kI64, DType::kF32));
  EXPECT_FALSE(convertible(DType::kF32, DType::kU8));
  EXPECT_THROW(converted<float>(int64_t{1}, DType::kI64, DType::kF32), Error);
}

}  // namespace
}  // namespace megalith
