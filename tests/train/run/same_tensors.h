#pragma once

#include <vector>

#include <gtest/gtest.h>

#include "libcore/checkpoint/native/reader.h"

namespace megalith::test {

/// Expects two checkpoints to have the same tensors, with the same values as fp32.
inline void expect_same_tensors(const CheckpointReader& left, const CheckpointReader& right) {
  ASSERT_EQ(left.index().tensors.size(), right.index().tensors.size());
  for (const IndexedTensor& tensor : left.index().tensors) {
    ASSERT_NE(right.index().find(tensor.name), nullptr) << tensor.name;
    const Box whole = Box::whole(tensor.name, tensor.shape);
    std::vector<float> x(static_cast<size_t>(tensor.shape.elements())), y = x;
    left.read(whole, View{x.data(), DType::kF32, tensor.shape});
    right.read(whole, View{y.data(), DType::kF32, tensor.shape});
    EXPECT_EQ(x, y) << tensor.name;
  }
}

}  // namespace megalith::test
