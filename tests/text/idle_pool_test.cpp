#include "libcore/text/idle_pool.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(IdlePool, FreesTheMemoryOfContainers) {
  std::vector<uint32_t> numbers(100'000);
  free_memory(numbers);
  EXPECT_EQ(numbers.capacity(), 0U);
  std::string text(100'000, 'x');
  free_memory(text);
  EXPECT_EQ(text, "");
  EXPECT_EQ(text.capacity(), std::string().capacity());
}

TEST(IdlePool, LendsAgainWhatWasGivenBack) {
  IdlePool<int> pool;
  int made = 0;
  const auto make = [&] { return std::make_unique<int>(++made); };
  {
    const auto first = pool.borrow(make), second = pool.borrow(make);
    EXPECT_EQ(*first + *second, 3);
  }
  EXPECT_LE(*pool.borrow(make), 2);
  EXPECT_EQ(made, 2);
}

}  // namespace
}  // namespace megalith
