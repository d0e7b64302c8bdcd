#include "libcore/ops/embedding.h"

#include <algorithm>

#include "libcore/ops/checks.h"

namespace megalith {
namespace {
void want_table(const char* op, const char* rule, const ConstView& table, const ConstView& y) {
  const bool narrower = y.dtype == DType::kF32 && (table.dtype == DType::kBf16 || table.dtype == DType::kF16);
  require(table && (table.dtype == y.dtype || narrower), op, rule, table ? name_of(table.dtype) : "no tensor",
          name_of(y.dtype));
}

void check_positions(const char* op, const ConstView& positions, const ConstView& y,
                     const RowPositions& rows) {
  require(positions.shape.back() == y.shape.back(), op, "positions [max, h]", positions.shape, y.shape);
  const int64_t end = y.shape[0] == 0 ? rows.first : rows.end(y.shape[0]);
  require(rows.valid() && end <= positions.shape.rows(), op, "the rows' places within positions", end,
          positions.shape);
}
}  // namespace

void Embedding::check() const {
  want_float(kName, "y", y);
  want_table(kName, "table of y's dtype, or narrower than an fp32 y", table, y);
  require(y.shape.back() == table.shape.back(), kName, "equal widths of y and table", y.shape, table.shape);
  want_vector(kName, "one id per row of y", ids, y.shape.rows(), DType::kI32);
  if (starts) want_vector(kName, "one start per row of y", starts, y.shape.rows(), DType::kI32);
  if (!positions) return;
  want_table(kName, "positions of y's dtype, or narrower than an fp32 y", positions, y);
  check_positions(kName, positions, y, rows);
}

Cost Embedding::cost() const {
  // The op reads one row of the table, and one of `positions` if given, for each row of y.
  const double read = bytes_of(y) * (positions ? 2 : 1);
  return {positions ? static_cast<double>(y.elements()) : 0.0, bytes_of(y) + read + bytes_of(ids)};
}

void EmbeddingGrad::check() const {
  want_float(kName, "dy", dy);
  want_dtype(kName, "dtable", dtable, DType::kF32);
  require(dy.shape.back() == dtable.shape.back(), kName, "equal widths of dy and dtable", dy.shape,
          dtable.shape);
  want_vector(kName, "one id per row of dy", ids, dy.shape.rows(), DType::kI32);
  if (starts) want_vector(kName, "one start per row of dy", starts, dy.shape.rows(), DType::kI32);
  if (!dpositions) return;
  want_dtype(kName, "dpositions", dpositions, DType::kF32);
  check_positions(kName, dpositions, dy, rows);
}

// Each sum reads dy once, in its own order. It reads and writes each of its rows once; how many ids differ is
// not known here.
Cost EmbeddingGrad::cost() const {
  const int64_t entries = std::min(dy.shape.rows(), dtable.shape.rows());
  const double summed = static_cast<double>(entries + (dpositions ? dy.shape[0] : 0));
  const int sums = dpositions ? 2 : 1;
  return {sums * static_cast<double>(dy.elements()),
          sums * bytes_of(dy) + bytes_of(ids) +
              2 * summed * static_cast<double>(dy.shape.back()) * size_of(DType::kF32)};
}

}  // namespace megalith
