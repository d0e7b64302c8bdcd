#pragma once

#include <cstdint>
#include <functional>

#include "libcore/checkpoint/tensor_file.h"

namespace megalith {

/// A tensor viewed as a matrix: its last axis is the columns; all other axes, joined, are the rows. If
/// `vector`, every element is a row with one column.
struct MatrixForm {
  Shape shape;
  bool vector = false;

  int64_t columns() const { return vector ? 1 : shape.back(); }
  int64_t rows() const { return vector ? shape.elements() : shape.rows(); }
};

/// Fills `out` with a block of tensor `name`, converted to the type of `out`. `out` is row-major and has as
/// many elements as the block. A range of rows may consist of several boxes, at most 2 * rank - 1; each is
/// read with one call of TensorFile::read(). Throws what that call throws.
void read_matrix(const TensorFile& file, const std::string& name, const MatrixForm& form, MatrixBlock block,
                 View out);

/// Calls take(row, rows, at) for each longest run of consecutive rows in a box, which begins at `offset` and
/// has shape `extent`. `row` is the run's first row in the tensor, `rows` its number of rows, and `at` the
/// number of rows in the box before it. The columns of a box are its last axis.
void for_each_row_run(const MatrixForm& form, const Shape& offset, const Shape& extent,
                      const std::function<void(int64_t row, int64_t rows, int64_t at)>& take);

/// Transposes a matrix: out [columns, rows] = in [rows, columns]. For any type.
void transpose(ConstView in, View out);
/// A part of a larger transposition: out[c][at + r] = in[r][first + c] for every row c of `out` and every row
/// r of `in`.
void transpose_rows(ConstView in, View out, int64_t at, int64_t first = 0);
/// The number of rows of `row_bytes` bytes that should be read at a time for transpose_rows(), so that they
/// stay in the nearest cache.
int64_t transposed_at_once(int64_t row_bytes);

}  // namespace megalith
