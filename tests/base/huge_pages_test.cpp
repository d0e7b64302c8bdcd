#include "libcore/base/huge_pages.h"

#include <cstdint>
#include <fstream>
#include <string>

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

/// Kibibytes of this process that /proc/self/smaps_rollup counts as `what`.
uint64_t own_memory(const char* what) {
  std::ifstream lines("/proc/self/smaps_rollup");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(what)) return std::stoull(line.substr(std::string(what).size() + 1));
  return 0;
}

TEST(HugePages, GetMemoryOfTheirOwnWhenTouched) {
  const HugePages pages(size_t{16} << 20);
  ASSERT_EQ(pages.large_pages(), 8U);
  EXPECT_EQ(HugePages((size_t{16} << 20) + 64).large_pages(), 9U);
  uint64_t before = own_memory("Private_Dirty:");
  pages.as<char>()[HugePages::kLargePage] = 7;
  const uint64_t page_size = own_memory("Private_Dirty:") - before;  // large, where there are such
  ASSERT_GT(page_size, 0U);
  char sum = 0;
  for (size_t page = 0; page < pages.large_pages(); ++page)
    sum = static_cast<char>(sum + pages.as<char>()[page * HugePages::kLargePage]);
  EXPECT_EQ(sum, 7);  // reading gives the others no memory
  before = own_memory("Private_Dirty:");
  for (size_t page = 0; page < pages.large_pages(); ++page) pages.touch(page);
  EXPECT_GE(own_memory("Private_Dirty:"), before + 6 * page_size);  // of 7: page_size may hold a little more
  for (size_t page = 0; page < pages.large_pages(); ++page)
    EXPECT_EQ(pages.as<char>()[page * HugePages::kLargePage], page == 1 ? 7 : 0);
}

}  // namespace
}  // namespace megalith
