#include "libcore/convert/convert_options.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(ParseSize, KnowsDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_size("5GB"), 5'000'000'000u);
  EXPECT_EQ(parse_size("4GiB"), uint64_t{4} << 30);
  EXPECT_EQ(parse_size("20KB"), 20'000u);
  EXPECT_EQ(parse_size("17"), 17u);
  EXPECT_EQ(parse_size("17B"), 17u);
  for (const char* bad : {"", "GB", "-1GB", "0", "5 GB", "5gb", "1.5GB", "99999999999999GB"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

}  // namespace
}  // namespace megalith
