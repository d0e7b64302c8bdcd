#include "libcore/parallel/exchange_cut.h"

#include <algorithm>

namespace megalith {

std::vector<RowPiece> ExchangeCut::pieces(const ExchangedRows& whole) const {
  // A piece is a range of rows or, of a sequence, of the ranks' parts.
  const int64_t part = whole.sequence ? std::max<int64_t>(whole.rows / whole.ranks, 1) : 1,
                parts = whole.rows / part;
  const size_t least = std::max<size_t>(least_bytes * static_cast<size_t>(whole.ranks), 1);
  const int64_t large_enough = static_cast<int64_t>(std::min(whole.bytes / least, static_cast<size_t>(most)));
  const int64_t count =
      whole.ranks == 1 ? 1 : std::clamp<int64_t>(large_enough, 1, std::max<int64_t>(parts, 1));
  if (count == 1) return {{.begin = 0, .end = whole.rows}};
  std::vector<RowPiece> pieces;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t first = parts * i / count, last = parts * (i + 1) / count;
    pieces.push_back({.begin = first * part, .end = last * part});
    if (whole.sequence) pieces.back().places = {static_cast<int>(first), static_cast<int>(last)};
  }
  return pieces;
}

}  // namespace megalith
