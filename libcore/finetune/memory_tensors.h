#pragma once

#include <map>
#include <string>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"

namespace megalith {

/// Small fp32 tensors in memory, computed from the tensors of another file.
class MemoryTensors final : public TensorFile {
 public:
  /// Error messages begin with `path`.
  explicit MemoryTensors(std::string path) : path_(std::move(path)) {}
  /// `values` holds one value for each element of the shape.
  void put(const std::string& name, const Shape& shape, std::vector<float> values);

  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override;

 private:
  std::string path_;
  std::vector<StoredTensor> tensors_;
  std::map<std::string, std::vector<float>> values_;
};

/// All values of a tensor, as fp32.
std::vector<float> read_whole(const TensorFile& file, const std::string& name, const Shape& shape);

}  // namespace megalith
