#pragma once

#include <cstdint>
#include <limits>

namespace megalith {

/// Which positions of a sequence the rows of a tensor hold: row i has position first + i, plus `jump` from
/// row `split` on. A sequence-parallel rank has one span, which may begin after 0; a context-parallel rank
/// has two spans.
struct RowPositions {
  int64_t first = 0;
  int64_t split =
      std::numeric_limits<int64_t>::max();  // the row where the second span begins; may be below 0
  int64_t jump = 0;                         // positions skipped between the spans; never negative

  constexpr int64_t at(int64_t row) const { return first + row + (row >= split ? jump : 0); }
  /// The positions of the rows from `row` on.
  constexpr RowPositions from(int64_t row) const {
    return {first + row, jump == 0 ? split : split - row, jump};
  }
  /// One more than the largest position of `rows` rows (at least one).
  constexpr int64_t end(int64_t rows) const { return at(rows - 1) + 1; }
  constexpr bool valid() const { return first >= 0 && jump >= 0; }
  /// Calls visit(begin, end, position) for the rows [begin, end) of each span; `position` is that of row
  /// `begin`.
  template <class Visit>
  void each_span(int64_t rows, const Visit& visit) const {
    const int64_t cut = one_span() || split > rows ? rows : split < 0 ? 0 : split;
    if (cut > 0) visit(int64_t{0}, cut, at(0));
    if (cut < rows) visit(cut, rows, at(cut));
  }
  /// Whether the positions of all rows are consecutive.
  constexpr bool one_span() const { return jump == 0; }
};

}  // namespace megalith
