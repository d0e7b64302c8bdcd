#pragma once

#include <list>
#include <vector>

#include "libcore/checkpoint/native/writer.h"
#include "libcore/checkpoint/tensor_file.h"

namespace megalith::test {

/// Puts tensors from a tensor file into a checkpoint as fp32. Holds the copied values and must live until
/// commit(), which reads them.
class TensorCopies {
 public:
  void put(CheckpointWriter& writer, const TensorFile& from, const StoredTensor& tensor) {
    const Shape shape = tensor.shape();
    const Box whole = Box::whole(tensor.name, shape);
    std::vector<float>& values = values_.emplace_back(static_cast<size_t>(shape.elements()));
    from.read(whole, {values.data(), DType::kF32, shape});
    writer.put(whole, {values.data(), DType::kF32, shape});
  }

 private:
  std::list<std::vector<float>> values_;
};

}  // namespace megalith::test
