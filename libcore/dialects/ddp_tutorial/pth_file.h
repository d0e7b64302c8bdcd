#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/torch/pickle_writer.h"
#include "libcore/io/files/file.h"

namespace megalith {

/// A file of torch.save that is being written: a pickle, and the tensors that it names.
class PthFile {
 public:
  explicit PthFile(std::string path) : path_(std::move(path)) {}

  PickleWriter& pickle() { return pickle_; }
  /// Fills rows of a tensor, from row `first` on: as many as `out` has, in host memory.
  using Fill = std::function<void(View out, int64_t first)>;
  /// Writes a tensor into the pickle, and returns the number of its storage. write() calls `fill` for
  /// `block_rows` rows at a time; 0: for the whole tensor at once.
  size_t tensor(TensorSpec, Fill fill, int64_t block_rows = 0);
  /// Writes a tensor into the pickle that shares a storage with an earlier one, and is equal to it.
  void same_tensor(size_t storage);
  /// Writes the file, which appears when it is complete. Takes memory for what is filled at one time. kIo.
  void write();

 private:
  struct Tensor {
    TensorSpec spec;
    Fill fill;
    int64_t block_rows;
  };
  /// Fills the tensor, hands its bytes to `file`, and returns their CRC-32. `bytes` is memory to reuse.
  static uint32_t write_tensor(const Tensor& tensor, AtomicFile& file, std::vector<std::byte>& bytes);
  std::string path_;
  PickleWriter pickle_;
  std::vector<Tensor> tensors_;
};

}  // namespace megalith
