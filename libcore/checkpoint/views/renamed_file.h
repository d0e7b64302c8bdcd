#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {

/// A Hugging Face container seen through our names and shapes. Opening compares all names and extents with
/// the configuration: a tensor that is missing, has other extents or does not belong to the model is kData
/// (those that hold no parameter, see NameMap::skipped, are ignored, and so is the head of a tied model).
class RenamedTensorFile final : public TensorFile {
 public:
  RenamedTensorFile(std::unique_ptr<TensorFile> theirs, const NameMap& map, const ModelConfig& config);

  const std::string& path() const override { return theirs_->path(); }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  /// Reads any block straight to its place; only transposed tensors go through a small buffer.
  void read(const Box& box, View out) const override;
  ConstView mapped(const Box& box) const override;

 private:
  void read_rows(const RenamedTensor& renamed, MatrixBlock block, View out) const;
  /// Fills runs of the block's rows (`ours`) from columns of the transposed tensor (`theirs`).
  void read_transposed(const TheirTensor& part, std::span<const RowRun> wanted, MatrixBlock block,
                       View out) const;
  void refuse_unmapped(const NameMap& map) const;

  std::unique_ptr<TensorFile> theirs_;
  std::vector<RenamedTensor> renamed_;  // sorted by our name
  std::vector<StoredTensor> tensors_;   // parallel to renamed_
};

}  // namespace megalith
