#include "libcore/checkpoint/tensor_digest.h"

#include <algorithm>
#include <random>
#include <vector>

#include "libcore/hash/xxh64.h"

namespace megalith {
namespace {

class Digest {
 public:
  explicit Digest(uint64_t seed) : draw_(seed) {}

  void add(const std::string& text) {
    add(static_cast<int64_t>(text.size()));
    hash_.update(text.data(), text.size());
  }
  void add(const TensorFile& file, const StoredTensor& tensor) {
    add(tensor.name);
    add(tensor.dtype_name);
    add(static_cast<int64_t>(tensor.extents.size()));
    for (const int64_t extent : tensor.extents) add(extent);
    if (tensor.dtype) add_values(file, tensor.name, *tensor.dtype, tensor.shape());
  }
  std::string text() const { return hex64(hash_.digest()); }

 private:
  void add(int64_t number) { hash_.update(&number, sizeof number); }
  void add_values(const TensorFile& file, const std::string& name, DType dtype, const Shape& shape) {
    if (shape.elements() == 0) return;
    Box box = Box::whole(name, shape);
    Shape extent = shape;
    int64_t left = kDigestValues;
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
      extent[axis] = std::min(left, shape[axis]);
      left /= extent[axis];
      const auto places = static_cast<uint64_t>(shape[axis] - extent[axis] + 1);
      box.offset[axis] = static_cast<int64_t>(draw_() % places);
    }
    std::vector<std::byte> values(static_cast<size_t>(extent.elements()) * size_of(dtype));
    file.read(box, View{values.data(), dtype, extent});
    hash_.update(values.data(), values.size());
  }

  Xxh64 hash_;
  std::mt19937_64 draw_;
};

}  // namespace

std::string tensor_digest(const TensorFile& file, uint64_t seed) {
  Digest digest(seed);
  if (const auto checksums = file.checksums())
    digest.add(*checksums);
  else
    for (const StoredTensor& tensor : file.tensors()) digest.add(file, tensor);
  return digest.text();
}

}  // namespace megalith
