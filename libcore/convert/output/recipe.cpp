#include "libcore/convert/output/recipe.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

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

// Whole heads are read, and their rows dealt out: 0, head / 2, 1, head / 2 + 1, …
void read_interleaved(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out) {
  const int64_t head = recipe.head, first = begin / head * head, last = (end + head - 1) / head * head;
  std::vector<std::byte> buffer(static_cast<size_t>((last - first) * recipe.columns) * size_of(out.dtype));
  const View heads{buffer.data(), out.dtype, {last - first, recipe.columns}};
  read_straight(file, recipe, {first, last - first, recipe.column, recipe.columns}, heads);
  const View rows = out.as_shape({end - begin, recipe.columns});
  for (int64_t row = begin; row < end; ++row) {
    const int64_t place = row % head, from = row - place + place / 2 + (place % 2) * (head / 2);
    std::memcpy(rows.rows(row - begin, row - begin + 1).data, heads.rows(from - first, from - first + 1).data,
                rows.bytes() / static_cast<size_t>(end - begin));
  }
}

std::string how_of(const NameRow& row, size_t part) {
  switch (row.transform) {
    case Transform::kCopy:
      return "copy";
    case Transform::kTranspose:
      return "transpose";
    case Transform::kSplitQkv:
      return concat("qkv[", "qkv"[part], ']');
    case Transform::kJoinQkv:
      return "q | k | v, transpose";
    case Transform::kSplitGateUp:
      return part == 0 ? "gate of fc1" : "up of fc1";
  }
  return {};
}

}  // namespace

int64_t Recipe::rows() const {
  return rows_of(runs) + repeated;
}

Recipe copy_recipe(const std::string& source, const MatrixForm& form) {
  return {
      .source = source, .form = form, .runs = {{0, form.rows()}}, .columns = form.columns(), .how = "copy"};
}

Recipe part_recipe(const MappedTensor& mapped, size_t part) {
  const PartRows rows = part_rows(mapped, part);
  Recipe recipe{.source = mapped.absent ? std::string() : mapped.ours,
                .form = {mapped.shape, rows.columns == 1},
                .columns = rows.columns,
                .transposed = rows.transposed,
                .how = mapped.absent ? "zeros" : how_of(*mapped.row, part)};
  for (const RowRun& run : rows.runs) recipe.runs.push_back({run.ours, run.rows});
  return recipe;
}

void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out) {
  if (recipe.source.empty()) {
    std::memset(out.data, 0, out.bytes());
    return;
  }
  if (recipe.head > 0) return read_interleaved(file, recipe, begin, end, out);
  if (!recipe.transposed)
    return read_straight(file, recipe, {begin, end - begin, recipe.column, recipe.columns}, out);
  const int64_t rows = recipe.rows(), columns = end - begin;
  const auto row_bytes = columns * static_cast<int64_t>(size_of(out.dtype));
  const int64_t step = transposed_at_once(row_bytes);
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(step, rows) * row_bytes));
  for (int64_t row = 0; row < rows; row += step) {
    const View straight{buffer.data(), out.dtype, {std::min(step, rows - row), columns}};
    read_straight(file, recipe, {row, straight.shape[0], recipe.column + begin, columns}, straight);
    transpose_rows(straight, out.as_shape({columns, rows}), row);
  }
}

}  // namespace megalith
