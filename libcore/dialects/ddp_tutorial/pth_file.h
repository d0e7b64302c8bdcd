#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "libcore/checkpoint/safetensors/safetensors.h"
#include "libcore/checkpoint/torch/pickle_writer.h"

namespace megalith {

/// A file of torch.save that is being written: a pickle, and the tensors that it names.
class PthFile {
 public:
  explicit PthFile(std::string path) : path_(std::move(path)) {}

  PickleWriter& pickle() { return pickle_; }
  /// Fills a tensor: its shape and type, in host memory.
  using Fill = std::function<void(View out)>;
  /// Writes a tensor into the pickle, and returns the number of its storage. write() calls `fill`.
  size_t tensor(TensorSpec, Fill fill);
  /// Writes a tensor into the pickle that shares a storage with an earlier one, and is equal to it.
  void same_tensor(size_t storage);
  /// Writes the file, which appears when it is complete. Takes memory for the largest tensor. kIo.
  void write();

 private:
  struct Tensor {
    TensorSpec spec;
    Fill fill;
  };
  std::string path_;
  PickleWriter pickle_;
  std::vector<Tensor> tensors_;
};

}  // namespace megalith
