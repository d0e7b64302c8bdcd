#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "libcore/checkpoint/name_maps/name_map.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/views/rows.h"

namespace megalith {

/// A Hugging Face container with our names and shapes. The constructor compares all names and extents with
/// the configuration. It throws kData if a tensor is missing, has other extents or does not belong to the
/// model. Tensors that hold no parameter (see NameMap::skipped) are ignored. A tied model may also hold its
/// head; the constructor throws kData if the head is not equal to the embedding.
class RenamedTensorFile final : public TensorFile {
 public:
  RenamedTensorFile(std::unique_ptr<TensorFile> theirs, const NameMap& map, const ModelConfig& config);

  const std::string& path() const override { return theirs_->path(); }
  const std::vector<StoredTensor>& tensors() const override { return tensors_; }
  /// Reads a block directly to `out`. Only transposed tensors go through a small buffer.
  void read(const Box& box, View out) const override;
  ConstView mapped(const Box& box) const override;

 private:
  void read_rows(const RenamedTensor& renamed, MatrixBlock block, View out) const;
  /// Fills some rows of the block (RowRun::ours) from columns of the transposed tensor (RowRun::theirs).
  void read_transposed(const TheirTensor& part, std::span<const RowRun> wanted, MatrixBlock block,
                       View out) const;
  void refuse_unmapped(const NameMap& map) const;
  void refuse_another_head(const NameMap& map) const;

  std::unique_ptr<TensorFile> theirs_;
  std::vector<RenamedTensor> renamed_;  // sorted by our name
  std::vector<StoredTensor> tensors_;   // parallel to renamed_
};

}  // namespace megalith
