#include "libcore/hash/crc32.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Computes the CRC bit by bit, as it is defined.
uint32_t naive(const std::string& text) {
  uint32_t remainder = 0xFFFFFFFF;
  for (const char c : text) {
    remainder ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder & 1) != 0 ? (remainder >> 1) ^ 0xEDB88320 : remainder >> 1;
  }
  return ~remainder;
}

std::string bytes_of(size_t n) {
  std::string out;
  uint32_t state = 12345;
  for (size_t i = 0; i < n; ++i) {
    state = state * 1664525 + 1013904223;
    out += static_cast<char>(state >> 24);
  }
  return out;
}

TEST(Crc32, IsTheCheckValueOfTheCatalogue) {
  EXPECT_EQ(crc32(0, "123456789", 9), 0xCBF43926);
  EXPECT_EQ(crc32(0, "", 0), 0U);
}

TEST(Crc32, OfNothingMoreIsThatOfTheBytesBefore) {
  EXPECT_EQ(crc32(0xCBF43926, nullptr, 0), 0xCBF43926);
  EXPECT_EQ(crc32(0xCBF43926, "", 0), 0xCBF43926);
}

TEST(Crc32, EqualsTheDefinitionForEveryLengthAndAlignment) {
  const std::string all = bytes_of(1700);
  for (size_t begin = 0; begin < 17; ++begin)
    for (size_t n = 0; begin + n <= all.size(); n += n < 300 ? 1 : 13) {
      const uint32_t wanted = naive(all.substr(begin, n));
      ASSERT_EQ(crc32(0, all.data() + begin, n), wanted) << begin << ' ' << n;
    }
}

TEST(Crc32, ContinuesWhereItStopped) {
  const std::string all = bytes_of(1000);
  for (const size_t cut : {0U, 1U, 63U, 128U, 500U, 999U})
    EXPECT_EQ(crc32(crc32(0, all.data(), cut), all.data() + cut, all.size() - cut), naive(all));
}

}  // namespace
}  // namespace megalith
