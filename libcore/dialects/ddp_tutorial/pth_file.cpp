#include "libcore/dialects/ddp_tutorial/pth_file.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "libcore/checkpoint/torch/torch_layout.h"
#include "libcore/hash/crc32.h"

namespace megalith {

size_t PthFile::tensor(TensorSpec spec, Fill fill, int64_t block_rows) {
  pickle_tensor(pickle_, spec, tensors_.size());
  if (block_rows == 0) block_rows = spec.shape[0];
  tensors_.push_back({std::move(spec), std::move(fill), block_rows});
  return tensors_.size() - 1;
}

void PthFile::same_tensor(size_t storage) {
  pickle_tensor(pickle_, tensors_[storage].spec, storage);
}

uint32_t PthFile::write_tensor(const Tensor& tensor, AtomicFile& file, std::vector<std::byte>& bytes) {
  const Shape& shape = tensor.spec.shape;
  uint32_t crc = 0;
  for (int64_t first = 0; first < shape[0]; first += tensor.block_rows) {
    TensorSpec block = tensor.spec;
    block.shape[0] = std::min(tensor.block_rows, shape[0] - first);
    bytes.resize(block.bytes());
    tensor.fill(View{bytes.data(), block.dtype, block.shape}, first);
    crc = crc32(crc, bytes.data(), bytes.size());
    file.write(bytes.data(), bytes.size());
  }
  return crc;
}

void PthFile::write() {
  std::vector<uint64_t> sizes;
  for (const Tensor& tensor : tensors_) sizes.push_back(tensor.spec.bytes());
  const TorchLayout layout(std::filesystem::path(path_).stem().string(), pickle_.finish(), sizes);
  AtomicFile file(path_);
  // The parts between the tensors hold their checksums, which are not known before the end.
  std::vector<uint32_t> crcs(tensors_.size());
  const std::vector<FilePart> parts = layout.parts(crcs);
  auto part = parts.begin();
  const auto write_parts = [&](uint64_t end) {
    for (; part != parts.end() && part->offset < end; ++part) file.write(part->bytes);
  };
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    write_parts(layout.offset(i));
    crcs[i] = write_tensor(tensors_[i], file, bytes);
  }
  write_parts(layout.size());
  for (const FilePart& known : layout.parts(crcs))
    file.write_at(known.offset, known.bytes.data(), known.bytes.size());
  file.commit();
}

}  // namespace megalith
