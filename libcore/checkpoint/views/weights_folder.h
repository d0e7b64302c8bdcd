#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/torch/torch_file.h"

namespace megalith {

/// Opens one file of weights: .safetensors, or a file of torch.save (pytorch_model.bin, a .pt file). Its
/// first bytes decide which. `writing`: see ReadableFile.
std::unique_ptr<TensorFile> open_weights(const std::string& path, CrcCheck crc = CrcCheck::kYes,
                                         PendingFiles* writing = nullptr);

/// The tensors of a Hugging Face folder. They are in model.safetensors, in the files that
/// model.safetensors.index.json lists, in pytorch_model.bin, or in the files that
/// pytorch_model.bin.index.json lists; the first of these that exists is read. An index may name only files
/// of this folder. Each of them must exist and hold exactly the tensors that the index assigns to it.
class WeightsFolder final : public TensorFile {
 public:
  explicit WeightsFolder(std::string folder, CrcCheck crc = CrcCheck::kYes, PendingFiles* writing = nullptr);
  /// Whether the folder has weights: one of the files named above.
  static bool is_there(const std::string& folder);

  const std::string& path() const override { return folder_; }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  void read(const Box& box, View out) const override;
  ConstView mapped(const Box& box) const override;
  /// The path of the file that holds a tensor. kData if none does.
  const std::string& file_of(const std::string& tensor) const;

 private:
  const TensorFile& owner_of(const StoredTensor& tensor) const;

  std::string folder_;
  std::vector<std::unique_ptr<TensorFile>> files_;
  std::vector<StoredTensor> tensors_;  // sorted by name
  std::vector<size_t> owners_;         // parallel to tensors_: index of the tensor's file in files_
};

}  // namespace megalith
