#include "libcore/base/shared_array.h"

#include <numeric>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(SharedArray, CopiesLieInOnePlaceAndOutliveTheFirst) {
  SharedArray<int> copy;
  EXPECT_TRUE(copy.empty());
  {
    const SharedArray<int> first(std::vector<int>{3, 4, 5});
    copy = first;
    EXPECT_EQ(copy.data(), first.data());
  }
  EXPECT_EQ(std::accumulate(copy.begin(), copy.end(), 0), 12);
  EXPECT_EQ(copy[1], 4);
  EXPECT_EQ(copy.size(), 3u);
}

TEST(SharedArray, KeepsTheOwnerOfWhatItShows) {
  auto owner = std::make_shared<std::vector<int>>(2, 7);
  const std::weak_ptr<std::vector<int>> watch = owner;
  {
    const SharedArray<int> shown(*owner, owner);
    owner.reset();
    EXPECT_EQ(shown[1], 7);
  }
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace megalith
