#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace megalith::cuda {

/// Which rows of a tensor are compared: of `every` rows, those from `first` to before `last`.
struct ComparedRows {
  size_t columns, every = 1, first = 0, last = 1;
};

/// The square of the length of a row, or of the difference of two.
inline double square_of(const float* a, const float* b, size_t columns) {
  double sum = 0;
  for (size_t i = 0; i < columns; ++i) {
    const double one = static_cast<double>(a[i]) - (b == nullptr ? 0 : static_cast<double>(b[i]));
    sum += one * one;
  }
  return sum;
}

/// Whether no row of `got` differs from that of `wanted` by more than 1/16: of the row's length, of the
/// length that the compared rows have in the mean, or of 1/256 an element, whichever is most. A row with NaN
/// differs.
///
/// A row's own length counts since those of the first positions, which see few keys, are many times as long
/// as the others, and so are their roundings. The mean counts since a sum may cancel to a short row.
inline bool rows_are_close(const std::vector<float>& got, const std::vector<float>& wanted,
                           const ComparedRows& rows) {
  constexpr double kShare = 1.0 / 16, kLeast = 0x1p-8;
  double all = 0;
  size_t count = 0;
  const auto each = [&](const auto& visit) {
    for (size_t row = 0; row < wanted.size() / rows.columns; ++row)
      if (const size_t place = row % rows.every; place >= rows.first && place < rows.last)
        visit(row * rows.columns);
  };
  each([&](size_t at) {
    all += square_of(&wanted[at], nullptr, rows.columns);
    ++count;
  });
  const double least = std::max(all / static_cast<double>(std::max<size_t>(count, 1)),
                                kLeast * kLeast * static_cast<double>(rows.columns));
  bool good = true;
  each([&](size_t at) {
    const double length = std::max(square_of(&wanted[at], nullptr, rows.columns), least);
    good = good && square_of(&got[at], &wanted[at], rows.columns) <= kShare * kShare * length;
  });
  return good;
}

}  // namespace megalith::cuda
