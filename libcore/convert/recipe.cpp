#include "libcore/convert/recipe.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"

namespace megalith {
namespace {

int64_t rows_of(const std::vector<RowSpan>& runs) {
  int64_t rows = 0;
  for (const RowSpan& run : runs) rows += run.rows;
  return rows;
}

// Rows [begin, end) of the result before its transposition, of columns [column, column + columns).
void read_straight(const TensorFile& file, const Recipe& recipe, MatrixBlock block, View out) {
  int64_t at = 0;  // row of the result at which a run begins
  const View rows = out.as_shape({block.rows, block.columns});
  const int64_t end = block.row + block.rows;
  for (const RowSpan& run : recipe.runs) {
    const int64_t first = std::max(at, block.row), last = std::min(at + run.rows, end);
    if (first < last)
      read_matrix(file, recipe.source, recipe.form,
                  {run.row + first - at, last - first, block.column, block.columns},
                  rows.rows(first - block.row, last - block.row));
    at += run.rows;
  }
  if (end <= at) return;
  const int64_t first = std::max(at, block.row),
                last_row = recipe.runs.back().row + recipe.runs.back().rows - 1;
  const View repeated = rows.rows(first - block.row, first - block.row + 1);
  read_matrix(file, recipe.source, recipe.form, {last_row, 1, block.column, block.columns}, repeated);
  for (int64_t row = first + 1; row < end; ++row)
    std::memcpy(rows.rows(row - block.row, row - block.row + 1).data, repeated.data, repeated.bytes());
}

}  // namespace

int64_t Recipe::rows() const {
  return rows_of(runs) + repeated;
}

Recipe copy_recipe(const std::string& source, const MatrixForm& form) {
  return {
      .source = source, .form = form, .runs = {{0, form.rows()}}, .columns = form.columns(), .how = "copy"};
}

void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out) {
  if (recipe.source.empty()) {
    std::memset(out.data, 0, out.bytes());
    return;
  }
  if (!recipe.transposed)
    return read_straight(file, recipe, {begin, end - begin, recipe.column, recipe.columns}, out);
  std::vector<std::byte> slice(out.bytes());
  const View straight{slice.data(), out.dtype, {recipe.rows(), end - begin}};
  read_straight(file, recipe, {0, recipe.rows(), recipe.column + begin, end - begin}, straight);
  transpose(straight, out);
}

}  // namespace megalith
