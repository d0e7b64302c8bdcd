#pragma once

#include <cstdint>

namespace megalith {

/// y [kProductTokens, y_stride] += x w for a few tokens and a part of a weight, on the calling thread: the
/// check of a conversion shares the machine with other work, where a team of threads would wait for its
/// slowest member.
constexpr int64_t kProductTokens = 8;
struct Products {
  float* y;
  int64_t y_stride;
  const float* x;
  int64_t x_stride;
  const float* w;  // [rows, columns], dense
  int64_t rows,
      columns;  // add_row_products(): results, inputs; add_transposed_products(): inputs, results
};
void add_row_products(const Products&);         // y[t][r] += sum over c of x[t][c] w[r][c]
void add_transposed_products(const Products&);  // y[t][c] += sum over r of x[t][r] w[r][c]

}  // namespace megalith
