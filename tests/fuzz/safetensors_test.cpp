#include "libcore/checkpoint/safetensors/safetensors.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

/// Reads a .safetensors file: its header, and every tensor that fits in memory.
MEGALITH_FUZZ_TARGET(safetensors) {
  using namespace megalith;
  const SafetensorsFile file(fuzz::file_of(bytes));
  for (const StoredTensor& tensor : file.tensors()) {
    const Shape shape = tensor.shape();
    if (shape.elements() > (1 << 20) || !tensor.dtype) continue;
    std::vector<std::byte> values(static_cast<size_t>(shape.elements()) * size_of(*tensor.dtype));
    file.read(Box::whole(tensor.name, shape), {values.data(), *tensor.dtype, shape});
  }
}
