#include "libcore/base/huge_pages.h"

#include <cstdint>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

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

/// For each large page whether its first page is this process's own: not absent, and not the system's page of
/// zeros, which all share (Linux, Documentation/admin-guide/mm/pagemap.rst, bits 63 and 56). Nothing where
/// the system does not tell.
std::vector<bool> owned(const HugePages& pages) {
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  const auto page_size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  std::vector<bool> found;
  for (size_t page = 0; page < pages.large_pages(); ++page) {
    const auto address = reinterpret_cast<uintptr_t>(pages.as<char>().data()) + page * HugePages::kLargePage;
    uint64_t entry = 0;
    const auto at = static_cast<off_t>(address / page_size * sizeof entry);
    if (::pread(map, &entry, sizeof entry, at) != sizeof entry) break;
    constexpr uint64_t kPresent = uint64_t{1} << 63, kExclusive = uint64_t{1} << 56;
    found.push_back((entry & kPresent) != 0 && (entry & kExclusive) != 0);
  }
  if (map >= 0) ::close(map);
  return found;
}

TEST(HugePages, GetMemoryOfTheirOwnWhenTouched) {
  const HugePages pages(size_t{16} << 20);
  ASSERT_EQ(pages.large_pages(), 8U);
  EXPECT_EQ(HugePages((size_t{16} << 20) + 64).large_pages(), 9U);
  const auto at = [&](size_t page) -> char& { return pages.as<char>()[page * HugePages::kLargePage]; };
  at(1) = 7;
  char sum = 0;
  for (size_t page = 0; page < pages.large_pages(); ++page) sum = static_cast<char>(sum + at(page));
  EXPECT_EQ(sum, 7);
  std::vector<bool> only_written(8);
  only_written[1] = true;
  if (owned(pages).empty()) GTEST_SKIP() << "/proc/self/pagemap cannot be read";
  EXPECT_EQ(owned(pages), only_written) << "reading gives the others no memory";
  for (size_t page = 0; page < pages.large_pages(); ++page) pages.touch(page);
  EXPECT_EQ(owned(pages), std::vector<bool>(8, true));
  for (size_t page = 0; page < pages.large_pages(); ++page) EXPECT_EQ(at(page), page == 1 ? 7 : 0);
}

}  // namespace
}  // namespace megalith
