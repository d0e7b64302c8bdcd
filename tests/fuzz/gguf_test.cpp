#include "libcore/checkpoint/gguf/gguf.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

/// Reads a .gguf file: its metadata, and every tensor that fits in memory, once whole and once without its
/// first column.
MEGALITH_FUZZ_TARGET(gguf) {
  using namespace megalith;
  const GgufFile file(fuzz::file_of(bytes));
  for (const StoredTensor& tensor : file.tensors()) {
    const Shape shape = tensor.shape();
    if (shape.elements() > (1 << 20)) continue;
    std::vector<float> values(static_cast<size_t>(shape.elements()));
    file.read(Box::whole(tensor.name, shape), {values.data(), DType::kF32, shape});
    if (shape.back() < 2) continue;
    Shape offset = Box::whole({}, shape).offset, extent = shape;
    offset[shape.rank - 1] = 1;
    --extent[shape.rank - 1];
    file.read({tensor.name, shape, offset}, {values.data(), DType::kF32, extent});
  }
}
