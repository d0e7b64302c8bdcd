#include "libcore/ops/cuda/row_tools.h"

// Products of fp32 rows with weights of any type, for inference. Reading the weights takes most of the time,
// so a warp multiplies one row of them with up to kRows rows of x. Each row's sum has one order, whatever the
// number of rows.

namespace megalith::cuda {
namespace {

constexpr int kRows = 8, kWarps = kThreads / 32;

template <class T, int kWide>
__global__ void __launch_bounds__(kThreads) project(ProjectArgs a) {
  const int64_t tiles = (a.rows + kRows - 1) / kRows, first = blockIdx.x % tiles * kRows;
  const int64_t column = blockIdx.x / tiles * kWarps + threadIdx.x / 32;
  if (column >= a.out) return;
  const T* const weights = static_cast<const T*>(a.w) + column * a.in;
  const int rows = static_cast<int>(a.rows - first < kRows ? a.rows - first : kRows);
  float sums[kRows] = {};
  for (int64_t i = kWide * (threadIdx.x % 32); i < a.in; i += 32 * kWide) {
    const Floats<kWide> w = widened(vector_at<kWide>(weights + i));
    MEGALITH_UNROLL for (int row = 0; row < kRows; ++row) {
      if (row >= rows) break;
      const Floats<kWide> x = floats_at<kWide>(a.x + (first + row) * a.in + i);
      MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) sums[row] += w.at[k] * x.at[k];
    }
  }
  MEGALITH_UNROLL for (int row = 0; row < kRows; ++row) {
    const float sum = warp_sum(sums[row]);
    if (row < rows && threadIdx.x % 32 == 0)
      a.y[(first + row) * a.out + column] = sum + (a.bias == nullptr ? 0.0f : a.bias[column]);
  }
}

}  // namespace

void launch_project(cudaStream_t stream, Storage w_storage, const ProjectArgs& a) {
  const int64_t blocks = blocks_for(a.rows, kRows) * blocks_for(a.out, kWarps);
  with_storage(w_storage, [&](auto element) {
    using T = decltype(element);
    with_width<T>(wide_rows<T>(a.in, a.w, a.x),
                  [&](auto width) { launch(stream, blocks, 0, project<T, decltype(width)::kElements>, a); });
  });
}

}  // namespace megalith::cuda
