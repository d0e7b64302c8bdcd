#pragma once

#include <cstdint>
#include <functional>

#include "libcore/checkpoint/tensor_file.h"

namespace megalith {

/// A tensor taken as a matrix: its last axis is the columns; all others, joined, are the rows. If `vector`,
/// every element is a row with 1 column.
struct MatrixForm {
  Shape shape;
  bool vector = false;

  int64_t columns() const { return vector ? 1 : shape.back(); }
  int64_t rows() const { return vector ? shape.elements() : shape.rows(); }
};

/// Fills `out` (row-major, as many elements as the block has) with a block of tensor `name`, converted to the
/// type of `out`. Reads at most 2 * rank - 1 boxes: a range of rows may consist of that many. Throws what
/// TensorFile::read throws.
void read_matrix(const TensorFile& file, const std::string& name, const MatrixForm& form, MatrixBlock block,
                 View out);

/// Calls take(row, rows, at) for each longest run of consecutive rows in the box at `offset` of `extent`;
/// `at` is the number of the box's rows before the run. The columns of a box are those of its last axis.
void for_each_row_run(const MatrixForm& form, const Shape& offset, const Shape& extent,
                      const std::function<void(int64_t row, int64_t rows, int64_t at)>& take);

/// out [columns, rows] = in [rows, columns], any type.
void transpose(ConstView in, View out);
/// A part of a larger transposition: out[c][at + r] = in[r][first + c] for every row c of `out` and every row
/// r of `in`.
void transpose_rows(ConstView in, View out, int64_t at, int64_t first = 0);
/// How many rows of `row_bytes` bytes to read at a time for transpose_rows(), so that they stay in the
/// nearest cache.
int64_t transposed_at_once(int64_t row_bytes);

}  // namespace megalith
