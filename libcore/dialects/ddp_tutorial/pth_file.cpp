#include "libcore/dialects/ddp_tutorial/pth_file.h"

#include <cstdint>
#include <filesystem>
#include <utility>

#include "libcore/checkpoint/torch/crc32.h"
#include "libcore/checkpoint/torch/torch_layout.h"
#include "libcore/io/files/file.h"

namespace megalith {

size_t PthFile::tensor(TensorSpec spec, Fill fill) {
  pickle_tensor(pickle_, spec, tensors_.size());
  tensors_.push_back({std::move(spec), std::move(fill)});
  return tensors_.size() - 1;
}

void PthFile::same_tensor(size_t storage) {
  pickle_tensor(pickle_, tensors_[storage].spec, storage);
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
    const TensorSpec& spec = tensors_[i].spec;
    bytes.resize(spec.bytes());
    tensors_[i].fill(View{bytes.data(), spec.dtype, spec.shape});
    crcs[i] = crc32(0, bytes.data(), bytes.size());
    file.write(bytes.data(), bytes.size());
  }
  write_parts(layout.size());
  for (const FilePart& known : layout.parts(crcs))
    file.write_at(known.offset, known.bytes.data(), known.bytes.size());
  file.commit();
}

}  // namespace megalith
