#include "libcore/checkpoint/torch/torch_file.h"

#include <vector>

#include "tests/fuzz/fuzz.h"

// Reads a torch.save file without checking its CRCs, which would reject almost every mutation.
MEGALITH_FUZZ_TARGET(torch_file) {
  using namespace megalith;
  const TorchTensorFile file(open_torch(fuzz::file_of(bytes, "x.pt"), CrcCheck::kNo));
  for (const StoredTensor& tensor : file.tensors()) {
    if (!tensor.dtype || tensor.extents.size() > Shape::kMaxRank) continue;
    const Shape shape = tensor.shape();
    std::vector<std::byte> values(static_cast<size_t>(shape.elements()) * size_of(*tensor.dtype));
    file.read(Box::whole(tensor.name, shape), {values.data(), *tensor.dtype, shape});
  }
}
