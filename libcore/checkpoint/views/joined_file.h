#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "libcore/checkpoint/tensor_file.h"
#include "libcore/checkpoint/torch/torch_file.h"

namespace megalith {

/// The order in which one rank holds the rows of a packed QKV. Our own order is, for each group: its query
/// heads, its key, its value.
enum class QkvOrder : uint8_t {
  kByGroup,   // our order (checkpoint_version 2 and 3)
  kByKind,    // [3, heads, head]: all queries, all keys, all values of the rank (version 0)
  kByElement  // [heads, head, 3] (version 1)
};
/// Maps rows between the two orders: theirs(row) is the place among a rank's rows of row number `row` in our
/// order. If head == 0, the orders are equal.
struct RowOrder {
  QkvOrder qkv = QkvOrder::kByGroup;
  int64_t head = 0;         // number of rows of a head
  int64_t heads = 0;        // number of heads on the rank (for kByKind)
  int64_t group_heads = 3;  // number of heads of a group: its queries plus 2
  // the rank's rows hold rotary pairs side by side: rows 2j and 2j+1 of each query and key
  bool interleaved = false;
  int64_t theirs(int64_t row) const;
};

/// A block of one of our tensors, and its place in a stored tensor, which padding may have made larger. Our
/// tensor is viewed as a matrix: its last axis is the columns. A bias or norm has one column.
struct JoinedPart {
  TorchTensor from;
  int64_t plane = -1;  // index on the outermost axis of `from`; -1 if that axis does not stack layers
  int64_t from_row = 0, from_column = 0;
  MatrixBlock ours = {};
  RowOrder order = {};
};

/// One of our tensors, assembled from parts.
struct JoinedTensor {
  std::string name;
  Shape shape;
  int64_t columns = 1;  // number of columns of the matrix
  bool vector = false;  // a bias or norm, which is stored with one axis and is one column here
  std::vector<JoinedPart> parts;
  std::vector<JoinedPart> copies = {};  // second copies of some rows; they must equal the rows in `parts`
  // the parts may hold more rows than `shape` has: Megatron pads the vocabulary
  bool padded = false;
  bool add_one = false;  // the file holds the value minus one (Megatron's --apply-layernorm-1p)

  int64_t rows() const { return columns == 0 ? 0 : shape.elements() / columns; }
};

/// Tensors under our names, each joined from parts in torch files: the ranks of a Megatron checkpoint, or the
/// chunks of a distributed one. Opening checks that the parts cover each tensor exactly once and have one
/// type (kData). When a tensor is first read, its copies are compared with its parts (kData if they differ),
/// since only the parts are used.
class JoinedTensorFile final : public TensorFile {
 public:
  JoinedTensorFile(std::string path, std::vector<JoinedTensor> tensors);

  const std::string& path() const override { return path_; }
  const std::vector<StoredTensor>& tensors() const override { return stored_; }
  void read(const Box& box, View out) const override;

 private:
  StoredTensor checked_stored(JoinedTensor& tensor) const;
  void compare_copies(size_t at) const;

  std::string path_;
  std::vector<JoinedTensor> joined_;  // sorted by name
  std::vector<StoredTensor> stored_;  // parallel to joined_
  mutable std::vector<bool> compared_;
  mutable std::mutex comparing_;  // held while copies are compared and while compared_ is changed
};

}  // namespace megalith
