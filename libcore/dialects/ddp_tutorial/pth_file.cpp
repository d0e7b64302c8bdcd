#include "libcore/dialects/ddp_tutorial/pth_file.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "libcore/checkpoint/torch/crc32.h"
#include "libcore/checkpoint/torch/torch_layout.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

/// The file is first filled with zeros, this many bytes at a time; then the parts are written over them.
constexpr uint64_t kZeros = uint64_t{1} << 20;

}  // namespace

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
  const std::string zeros(kZeros, '\0');
  for (uint64_t at = 0; at < layout.size(); at += kZeros)
    file.write(zeros.data(), std::min<uint64_t>(kZeros, layout.size() - at));
  std::vector<uint32_t> crcs;
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const TensorSpec& spec = tensors_[i].spec;
    bytes.resize(spec.bytes());
    tensors_[i].fill(View{bytes.data(), spec.dtype, spec.shape});
    crcs.push_back(crc32(0, bytes.data(), bytes.size()));
    file.write_at(layout.offset(i), bytes.data(), bytes.size());
  }
  for (const FilePart& part : layout.parts(crcs))
    file.write_at(part.offset, part.bytes.data(), part.bytes.size());
  file.commit();
}

}  // namespace megalith
