#include "libcore/finetune/memory_tensors.h"

#include <algorithm>
#include <utility>

#include "libcore/checkpoint/slice.h"

namespace megalith {

void MemoryTensors::put(const std::string& name, const Shape& shape, std::vector<float> values) {
  StoredTensor tensor{.name = name, .dtype_name = "F32", .dtype = DType::kF32, .extents = {}};
  for (int axis = 0; axis < shape.rank; ++axis) tensor.extents.push_back(shape[axis]);
  const auto before = [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; };
  tensors_.insert(std::upper_bound(tensors_.begin(), tensors_.end(), tensor, before), tensor);
  values_[name] = std::move(values);
}

void MemoryTensors::read(const Box& box, View out) const {
  checked(box, out);
  const std::vector<float>& values = values_.at(box.name);
  copy_block(ConstView{values.data(), DType::kF32, box.global}, box.offset, out,
             Box::whole({}, out.shape).offset, out.shape);
}

std::vector<float> read_whole(const TensorFile& file, const std::string& name, const Shape& shape) {
  std::vector<float> values(static_cast<size_t>(shape.elements()));
  file.read(Box::whole(name, shape), View{values.data(), DType::kF32, shape});
  return values;
}

}  // namespace megalith
