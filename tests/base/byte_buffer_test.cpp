#include "libcore/base/byte_buffer.h"

#include <algorithm>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "libcore/base/process.h"
#include "tests/support/compiler.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string_view text(const ByteBuffer& buffer) {
  return {buffer.data(), buffer.size()};
}

TEST(ByteBuffer, KeepsItsBytesHoweverItGrows) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    ByteBuffer buffer;
    std::string expected;
    while (expected.size() < (size_t{3} << 20)) {
      if (random() % 8 == 0) {
        expected.resize(random() % (expected.size() + 1));
        buffer.truncate(expected.size());
      }
      if (random() % 8 == 0) buffer.reserve(random() % (size_t{1} << 20));
      const std::string more = test::random_bytes(random, random() % (random() % 4 ? 5000 : size_t{1} << 19));
      buffer.append(more.data(), more.size());
      expected += more;
      ASSERT_GE(buffer.capacity(), buffer.size());
      ASSERT_TRUE(text(buffer) == expected) << expected.size();
    }
    ByteBuffer moved = std::move(buffer);
    ASSERT_TRUE(text(moved) == expected);
    moved = ByteBuffer();
    EXPECT_EQ(moved.size(), 0U);
  }
}

TEST(ByteBuffer, IsNotInMemoryTwiceWhenItGrows) {
  if (test::kThreadSanitizer) GTEST_SKIP() << "the sanitizer's own memory is several times the program's";
  const std::string block(size_t{1} << 20, 'x');
  const auto before = static_cast<size_t>(peak_memory());
  ByteBuffer buffer;
  for (int i = 0; i < 300; ++i) buffer.append(block.data(), block.size());
  EXPECT_LT(static_cast<size_t>(peak_memory()) - before, size_t{320} << 20);
  EXPECT_EQ(std::count(buffer.data(), buffer.data() + buffer.size(), 'x'), int64_t{300} << 20);
}

TEST(ByteBuffer, TellsWhenThereIsNoMemory) {
  ByteBuffer buffer;
  buffer.append("abc", 3);
  EXPECT_THROW(buffer.reserve(size_t{1} << 62), std::bad_alloc);
  EXPECT_EQ(text(buffer), "abc");
  buffer.reserve(size_t{1} << 20);
  EXPECT_THROW(buffer.reserve(size_t{1} << 62), std::bad_alloc);
  EXPECT_EQ(text(buffer), "abc");
}

}  // namespace
}  // namespace megalith
