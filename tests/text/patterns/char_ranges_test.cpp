#include "libcore/text/patterns/char_ranges.h"

#include <gtest/gtest.h>

#include "libcore/text/patterns/properties.h"

namespace megalith {
namespace {

TEST(CharRanges, AreInOrderAndApart) {
  using Ranges = std::vector<CharRanges::Range>;
  EXPECT_EQ(CharRanges({{5, 7}, {1, 2}, {3, 3}, {6, 9}}).ranges(), (Ranges{{1, 3}, {5, 9}}));
  EXPECT_EQ((~CharRanges({{1, 3}})).ranges(), (Ranges{{0, 0}, {4, CharRanges::kLast}}));
  EXPECT_EQ((CharRanges({{1, 5}}) & CharRanges({{0, 1}, {4, 9}})).ranges(), (Ranges{{1, 1}, {4, 5}}));
  EXPECT_EQ((CharRanges::one(1) | CharRanges::one(2)).ranges(), (Ranges{{1, 2}}));
  EXPECT_TRUE((~CharRanges::all()).empty());
  EXPECT_EQ(~~CharRanges(), CharRanges());
  const CharRanges some({{2, 3}, {7, 7}});
  for (uint32_t c = 0; c < 10; ++c) EXPECT_EQ(some.has(c), c == 2 || c == 3 || c == 7) << c;
}

TEST(CharProperty, HasCategoriesAndScripts) {
  EXPECT_TRUE(char_property("Lu")->has('A'));
  EXPECT_FALSE(char_property("lu")->has('a'));
  EXPECT_TRUE(char_property("L")->has(0x65E5));
  EXPECT_TRUE(char_property("Han")->has(0x3005));
  EXPECT_FALSE(char_property("Han")->has(0x3042));
  EXPECT_TRUE(char_property("space")->has(0x3000));
  EXPECT_FALSE(char_property("Unheard"));
  EXPECT_FALSE(char_property(""));
}

}  // namespace
}  // namespace megalith
