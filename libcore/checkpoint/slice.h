#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/io/files/file.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// The place of a block in a tensor. The block begins at `offset`; its extents are those of the View that
/// comes with the Box.
struct Box {
  std::string name;
  Shape global;  // of the whole tensor
  Shape offset;  // as many axes as `global`

  /// The Box of a whole tensor.
  static Box whole(std::string name, Shape global);
};

/// A block of a matrix: consecutive columns of consecutive rows. checkpoint/views/rows.h defines how tensors
/// are taken as matrices and reads blocks of them.
struct MatrixBlock {
  int64_t row = 0, rows = 0, column = 0, columns = 1;

  int64_t end() const { return row + rows; }  // the row after the last one
};
/// The common part of two blocks of one matrix. If the blocks do not overlap, it has no rows or no columns.
MatrixBlock common(const MatrixBlock& a, const MatrixBlock& b);

/// Whether a block of `extent` at `offset` is within `global`: all three must have equally many axes, and no
/// number may be negative.
bool fits(const Shape& global, const Shape& offset, const Shape& extent);

/// Copies the block of shape `extent` from `from_at` in `from` to `to_at` in `to`, both in host memory,
/// converting the type if needed (see convert_elements()). The caller has checked with fits() that the block
/// is within `from` and within `to`.
void copy_block(ConstView from, const Shape& from_at, View to, const Shape& to_at, const Shape& extent);

/// A dense tensor in a file.
struct FileBlock {
  const ReadableFile& file;
  uint64_t begin;  // offset in the file of its first element
  DType dtype;
  Shape shape;
};
/// As copy_block(), but `from` is in a file. It is read by calls, so only a small buffer is needed in
/// addition to `to`. Throws kData and kIo as ReadableFile does.
void read_block(const FileBlock& from, const Shape& from_at, View to, const Shape& to_at,
                const Shape& extent);

/// The offset and extent of the common part of two blocks of one tensor. If they do not overlap, some extent
/// is 0.
struct Overlap {
  Shape offset, extent;
};
Overlap overlap(const Shape& offset_a, const Shape& extent_a, const Shape& offset_b, const Shape& extent_b);

/// Divides elements [begin, end) of a dense tensor, counted in memory order, into contiguous blocks. Each
/// axis contributes at most three of them: the end of a row, whole rows, and the beginning of a row.
std::vector<Overlap> blocks_of_range(const Shape& shape, int64_t begin, int64_t end);

}  // namespace megalith
