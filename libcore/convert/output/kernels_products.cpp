#include "libcore/convert/output/kernels_products.h"

#include <cstring>

namespace megalith {
namespace {

constexpr int64_t kLanes = 4;  // number of floats in a vector that every x86-64 processor has
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

}  // namespace

void add_row_products(const Products& p) {
  const int64_t whole = p.columns / kLanes * kLanes;
  for (int64_t r = 0; r < p.rows; ++r) {
    const float* row = p.w + r * p.columns;
    Lanes sums[kProductTokens] = {};
    for (int64_t c = 0; c < whole; c += kLanes) {
      const Lanes w = load(row + c);
      for (int64_t t = 0; t < kProductTokens; ++t) sums[t] += w * load(p.x + t * p.x_stride + c);
    }
    for (int64_t t = 0; t < kProductTokens; ++t) {
      float sum = 0;
      for (int64_t lane = 0; lane < kLanes; ++lane) sum += sums[t][lane];
      for (int64_t c = whole; c < p.columns; ++c) sum += row[c] * p.x[t * p.x_stride + c];
      p.y[t * p.y_stride + r] += sum;
    }
  }
}

void add_transposed_products(const Products& p) {
  const int64_t whole = p.columns / kLanes * kLanes;
  for (int64_t c = 0; c < whole; c += kLanes) {
    Lanes sums[kProductTokens] = {};
    for (int64_t r = 0; r < p.rows; ++r) {
      const Lanes w = load(p.w + r * p.columns + c);
      for (int64_t t = 0; t < kProductTokens; ++t) sums[t] += w * p.x[t * p.x_stride + r];
    }
    for (int64_t t = 0; t < kProductTokens; ++t)
      for (int64_t lane = 0; lane < kLanes; ++lane) p.y[t * p.y_stride + c + lane] += sums[t][lane];
  }
  for (int64_t c = whole; c < p.columns; ++c)
    for (int64_t t = 0; t < kProductTokens; ++t)
      for (int64_t r = 0; r < p.rows; ++r)
        p.y[t * p.y_stride + c] += p.x[t * p.x_stride + r] * p.w[r * p.columns + c];
}

}  // namespace megalith
