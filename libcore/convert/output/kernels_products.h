#pragma once

#include <cstdint>

namespace megalith {

/// y [kProductTokens, y_stride] += x w, for a few tokens and a part of a weight. It runs on the calling
/// thread alone: while a conversion is checked, the machine does other work, and a team of threads would wait
/// for its slowest member.
constexpr int64_t kProductTokens = 8;
struct Products {
  float* y;
  int64_t y_stride;
  const float* x;
  int64_t x_stride;
  const float* w;  // [rows, columns], dense
  int64_t rows,
      // rows and columns of w. add_row_products(): results and inputs; add_transposed_products(): inputs and
      // results.
      columns;
};
void add_row_products(const Products&);         // y[t][r] += sum over c of x[t][c] w[r][c]
void add_transposed_products(const Products&);  // y[t][c] += sum over r of x[t][r] w[r][c]

}  // namespace megalith
