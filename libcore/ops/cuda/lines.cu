#include "libcore/ops/cuda/row_tools.h"

// One warp per line, in vectors of 16 bytes where all lines allow it: lines at a distance are copied and
// added, and those of a matrix of weights are multiplied with fp32 rows.

namespace megalith::cuda {
namespace {

constexpr int kLinesOfBlock = kThreads / 32;

__device__ inline int64_t line_of_warp() {
  return int64_t{blockIdx.x} * kLinesOfBlock + threadIdx.x / 32;
}

template <class T>
__global__ void copy_lines(LineCopy a) {
  const int64_t line = line_of_warp();
  if (line >= a.lines) return;
  T* const to = reinterpret_cast<T*>(static_cast<char*>(a.to) + line * a.to_stride);
  const T* const from = reinterpret_cast<const T*>(static_cast<const char*>(a.from) + line * a.from_stride);
  for (int64_t i = threadIdx.x % 32; i < a.bytes / static_cast<int64_t>(sizeof(T)); i += 32) to[i] = from[i];
}

template <class T, int kWide>
__global__ void add_lines(LineSum a) {
  const int64_t line = line_of_warp();
  if (line >= a.lines) return;
  T* const to = static_cast<T*>(a.to) + line * a.to_stride;
  const T* const from = static_cast<const T*>(a.from) + line * a.columns;
  for (int64_t i = int64_t{kWide} * (threadIdx.x % 32); i < a.columns; i += int64_t{32} * kWide) {
    Vector<kWide, T> sum = vector_at<kWide>(to + i);
    const Vector<kWide, T> more = vector_at<kWide>(from + i);
    MEGALITH_UNROLL for (int k = 0; k < kWide; ++k) sum.at[k] =
        narrow<T>(widen(sum.at[k]) + widen(more.at[k]));
    put_vector(to + i, sum);
  }
}

constexpr int kRows = 8;

/// For inference: reading the weights takes most of the time, so a warp multiplies one line of them with up
/// to kRows rows of x. Each row's sum has one order, whatever the number of rows.
template <class T, int kWide>
__global__ void __launch_bounds__(kThreads) project(ProjectArgs a) {
  const int64_t tiles = (a.rows + kRows - 1) / kRows, first = blockIdx.x % tiles * kRows;
  const int64_t column = blockIdx.x / tiles * kLinesOfBlock + threadIdx.x / 32;
  if (column >= a.out) return;
  const T* const weights = static_cast<const T*>(a.w) + column * a.in;
  const int rows = static_cast<int>(a.rows - first < kRows ? a.rows - first : kRows);
  float sums[kRows] = {};
  for (int64_t i = int64_t{kWide} * (threadIdx.x % 32); i < a.in; i += int64_t{32} * kWide) {
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

void launch_copy_lines(cudaStream_t stream, const LineCopy& args) {
  using Wide = Vector<4, uint32_t>;
  const auto unit = static_cast<uint64_t>(args.to_stride | args.from_stride | args.bytes) |
                    reinterpret_cast<uintptr_t>(args.to) | reinterpret_cast<uintptr_t>(args.from);
  const int64_t blocks = blocks_for(args.lines, kLinesOfBlock);
  if (unit % sizeof(Wide) == 0)
    launch(stream, blocks, 0, copy_lines<Wide>, args);
  else
    launch(stream, blocks, 0, copy_lines<uint16_t>, args);
}

void launch_add_lines(cudaStream_t stream, Storage storage, const LineSum& args) {
  const int64_t blocks = blocks_for(args.lines, kLinesOfBlock);
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    constexpr int kWide = static_cast<int>(16 / sizeof(T));
    if ((args.to_stride | args.columns) % kWide == 0 && aligned16(args.to, args.from))
      launch(stream, blocks, 0, add_lines<T, kWide>, args);
    else
      launch(stream, blocks, 0, add_lines<T, 1>, args);
  });
}

void launch_project(cudaStream_t stream, Storage w_storage, const ProjectArgs& a) {
  const int64_t blocks = blocks_for(a.rows, kRows) * blocks_for(a.out, kLinesOfBlock);
  with_storage(w_storage, [&](auto element) {
    using T = decltype(element);
    with_width<T>(wide_rows<T>(a.in, a.w, a.x),
                  [&](auto width) { launch(stream, blocks, 0, project<T, decltype(width)::kElements>, a); });
  });
}

}  // namespace megalith::cuda
