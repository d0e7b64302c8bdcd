#include "libcore/tensor/view.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

TEST(Shape, CountsElementsAndRows) {
  EXPECT_EQ((Shape{2, 3, 5}).elements(), 30);
  EXPECT_EQ((Shape{2, 3, 5}).rows(), 6);
  EXPECT_EQ((Shape{2, 3, 5}).back(), 5);
  EXPECT_EQ((Shape{7}).rows(), 1);
  EXPECT_EQ((Shape{0, 4}).elements(), 0);
  EXPECT_EQ(Shape().elements(), 0);
  EXPECT_EQ(Shape().back(), 0);
}

TEST(Shape, ComparesRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2, 1}), Shape{2});
}

TEST(View, TakesRowsOfTheOutermostAxis) {
  uint16_t data[24] = {};
  const View view{data, DType::kBf16, {4, 2, 3}};
  EXPECT_EQ(view.bytes(), 48u);
  const View part = view.rows(1, 3);
  EXPECT_EQ(part.data, data + 6);
  EXPECT_EQ(part.shape, (Shape{2, 2, 3}));
  EXPECT_EQ(view.rows(4, 4).elements(), 0);
}

TEST(View, RefusesRowsBeyondTheEnd) {
  float data[4] = {};
  const View view{data, DType::kF32, {4}};
  EXPECT_THROW(view.rows(2, 5), Error);
  EXPECT_THROW(view.rows(-1, 2), Error);
  EXPECT_THROW(view.rows(3, 2), Error);
}

TEST(View, TakesAnotherShapeOfAsManyElements) {
  float data[6] = {};
  const ConstView view = View{data, DType::kF32, {2, 3}};
  EXPECT_EQ(view.as_shape({6}).shape, Shape{6});
  EXPECT_THROW(view.as_shape({5}), Error);
}

TEST(View, IsAbsentWithoutData) {
  EXPECT_FALSE(View{});
  EXPECT_EQ(View{}.bytes(), 0u);
}

}  // namespace
}  // namespace megalith
