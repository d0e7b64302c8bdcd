#include "libcore/base/machine/huge_pages.h"

#include <cstdint>
#include <span>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(HugePages, AreZeroAndAlignedAndMove) {
  EXPECT_TRUE(HugePages().as<char>().empty());
  for (size_t bytes : {size_t{100}, size_t{1} << 21, (size_t{5} << 20) + 64}) {
    HugePages pages(bytes);
    const std::span<unsigned char> all = pages.as<unsigned char>();
    ASSERT_EQ(all.size(), bytes);
    for (unsigned char c : all) ASSERT_EQ(c, 0);
    all.front() = all.back() = 7;
    if (bytes >= size_t{1} << 21) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>(all.data()) % (size_t{1} << 21), 0U);
    }
    HugePages moved = std::move(pages);
    EXPECT_EQ(moved.as<unsigned char>().data(), all.data());
    EXPECT_EQ(moved.as<uint64_t>().size(), bytes / 8);
    moved = HugePages();
    EXPECT_TRUE(moved.as<char>().empty());
  }
}

}  // namespace
}  // namespace megalith
