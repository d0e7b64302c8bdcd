#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// The part of a tensor that somebody holds, wants or stores: it begins at `offset`, and its extents are
/// those of the accompanying View.
struct Box {
  std::string name;
  Shape global;  // of the whole tensor
  Shape offset;  // as many axes

  /// The whole tensor.
  static Box whole(std::string name, Shape global);
};

/// A block of a matrix: consecutive rows, and consecutive columns of them. checkpoint/views/rows.h says which
/// tensors are matrices and reads blocks of them.
struct MatrixBlock {
  int64_t row = 0, rows = 0, column = 0, columns = 1;

  int64_t end() const { return row + rows; }  // the row after the last
};
/// The common part of two blocks of one matrix; without rows or columns if they do not overlap.
MatrixBlock common(const MatrixBlock& a, const MatrixBlock& b);

/// Whether a block of `extent` at `offset` is within `global`: equally many axes, no negative numbers.
bool fits(const Shape& global, const Shape& offset, const Shape& extent);

/// Copies the block of `extent` elements at `from_at` in `from` to `to_at` in `to`, converting the type if
/// needed (see convert_elements). Host memory. The caller has checked both with fits().
void copy_block(ConstView from, const Shape& from_at, View to, const Shape& to_at, const Shape& extent);

/// A dense tensor in a file.
struct FileBlock {
  const ReadableFile& file;
  uint64_t begin;  // byte of its first element
  DType dtype;
  Shape shape;
};
/// As copy_block(), from a file, by calls, so that only a small buffer is needed in addition to `to`. Throws
/// ReadableFile's kData and kIo.
void read_block(const FileBlock& from, const Shape& from_at, View to, const Shape& to_at,
                const Shape& extent);

/// The offset and extent of the common part of two blocks of one tensor; an extent of 0 if they do not
/// overlap.
struct Overlap {
  Shape offset, extent;
};
Overlap overlap(const Shape& offset_a, const Shape& extent_a, const Shape& offset_b, const Shape& extent_b);

/// Elements [begin, end) of a dense tensor, in memory order, as blocks of adjacent elements: for each axis at
/// most a part of a row, whole rows and a part of a row.
std::vector<Overlap> blocks_of_range(const Shape& shape, int64_t begin, int64_t end);

}  // namespace megalith
