#include "libcore/convert/output/recipe.h"

#include <algorithm>
#include <cstring>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

// Reads a block of the result as it is before it is transposed.
void read_straight(const TensorFile& file, const Recipe& recipe, const MatrixBlock& wanted, View out) {
  int64_t at = 0;  // the row of the result at which the current block of the recipe begins
  const View rows = out.as_shape({wanted.rows, wanted.columns});
  const auto read = [&](int64_t row, int64_t n, View to) {
    read_matrix(file, recipe.source, recipe.form,
                {row, n, recipe.blocks.front().column + wanted.column, wanted.columns}, to);
  };
  for (const MatrixBlock& block : recipe.blocks) {
    const int64_t first = std::max(at, wanted.row), last = std::min(at + block.rows, wanted.end());
    if (first < last)
      read(block.row + first - at, last - first, rows.rows(first - wanted.row, last - wanted.row));
    at += block.rows;
  }
  if (wanted.end() <= at) return;
  const int64_t first = std::max(at, wanted.row);
  const View repeated = rows.rows(first - wanted.row, first - wanted.row + 1);
  read(recipe.blocks.back().end() - 1, 1, repeated);
  for (int64_t row = first + 1; row < wanted.end(); ++row)
    std::memcpy(rows.rows(row - wanted.row, row - wanted.row + 1).data, repeated.data, repeated.bytes());
}

// Reads whole heads and puts the rows of each in the order 0, head / 2, 1, head / 2 + 1, … All rows of a head
// are read, since even a part of the result may need rows from all of it.
void read_interleaved(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out) {
  const int64_t head = recipe.head, columns = recipe.columns(), first = begin / head * head,
                last = (end + head - 1) / head * head;
  std::vector<std::byte> buffer(static_cast<size_t>((last - first) * columns) * size_of(out.dtype));
  const View heads{buffer.data(), out.dtype, {last - first, columns}};
  read_straight(file, recipe, {first, last - first, 0, columns}, heads);
  const View rows = out.as_shape({end - begin, columns});
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
    case Transform::kStackQkv:
      return "q | k | v";
    case Transform::kSplitGateUp:
      return part == 0 ? "gate of fc1" : "up of fc1";
  }
  return {};
}

}  // namespace

int64_t Recipe::rows() const {
  int64_t rows = repeated;
  for (const MatrixBlock& block : blocks) rows += block.rows;
  return rows;
}

int64_t source_element(const Recipe& recipe, int64_t element) {
  int64_t row = element / recipe.columns();
  const int64_t column = element % recipe.columns();
  for (const MatrixBlock& block : recipe.blocks) {
    if (row < block.rows)
      return (block.row + row) * recipe.form.columns() + recipe.blocks.front().column + column;
    row -= block.rows;
  }
  fail(ErrorKind::kInternal, "element ", element, " of a part of ", recipe.source, " is padding");
}

Recipe copy_recipe(const std::string& source, const MatrixForm& form) {
  return {.source = source, .form = form, .blocks = {{0, form.rows(), 0, form.columns()}}, .how = "copy"};
}

Recipe part_recipe(const RenamedTensor& renamed, size_t part) {
  const PartRows rows = part_rows(renamed, part);
  Recipe recipe{.source = renamed.absent ? std::string() : renamed.ours,
                .form = {renamed.shape, rows.columns == 1},
                .transposed = rows.transposed,
                .how = renamed.absent ? "zeros" : how_of(*renamed.row, part)};
  for (const RowRun& run : rows.runs) recipe.blocks.push_back({run.ours, run.rows, 0, rows.columns});
  return recipe;
}

void read_recipe(const TensorFile& file, const Recipe& recipe, int64_t begin, int64_t end, View out) {
  if (recipe.source.empty()) {
    std::memset(out.data, 0, out.bytes());
    return;
  }
  if (recipe.head > 0) return read_interleaved(file, recipe, begin, end, out);
  if (!recipe.transposed) return read_straight(file, recipe, {begin, end - begin, 0, recipe.columns()}, out);
  const int64_t rows = recipe.rows(), columns = end - begin;
  const auto row_bytes = columns * static_cast<int64_t>(size_of(out.dtype));
  const int64_t step = transposed_at_once(row_bytes);
  std::vector<std::byte> buffer(static_cast<size_t>(std::min(step, rows) * row_bytes));
  for (int64_t row = 0; row < rows; row += step) {
    const View straight{buffer.data(), out.dtype, {std::min(step, rows - row), columns}};
    read_straight(file, recipe, {row, straight.shape[0], begin, columns}, straight);
    transpose_rows(straight, out.as_shape({columns, rows}), row);
  }
}

}  // namespace megalith
