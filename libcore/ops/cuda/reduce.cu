#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/kernel_tools.h"

// Sums over rows and over whole tensors. The order of summation depends only on the sizes, so that a run is
// reproducible bit for bit.

namespace megalith::cuda {
namespace {

// ---- sums down columns

constexpr int kColumnsPerBlock = 32, kRowsAtOnce = kThreads / kColumnsPerBlock;

/// The sum over the block's threads for one column; only the threads of the first row receive it.
__device__ inline float column_total(float value) {
  __shared__ float sums[kRowsAtOnce][kColumnsPerBlock];
  const unsigned column = threadIdx.x % kColumnsPerBlock, row = threadIdx.x / kColumnsPerBlock;
  __syncthreads();
  sums[row][column] = value;
  __syncthreads();
  float total = 0;
  if (row == 0)
    for (int i = 0; i < kRowsAtOnce; ++i) total += sums[i][column];
  return total;
}

/// Writes each row block's sums of dy xhat and of dy to `partial` [row block][2][columns].
template <class T>
__global__ void column_sums(ColumnSums a, int64_t rows_per_block, float* partial) {
  const int64_t column_blocks = (a.columns + kColumnsPerBlock - 1) / kColumnsPerBlock;
  const int64_t row_block = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * kColumnsPerBlock + threadIdx.x % kColumnsPerBlock;
  const int64_t begin = row_block * rows_per_block;
  const int64_t end = begin + rows_per_block < a.rows ? begin + rows_per_block : a.rows;
  const T *const dy = static_cast<const T*>(a.dy), *const x = static_cast<const T*>(a.x);
  float plain = 0, normed = 0;
  if (column < a.columns)
    for (int64_t row = begin + threadIdx.x / kColumnsPerBlock; row < end; row += kRowsAtOnce) {
      const int64_t at = place_of(a.part, row, a.columns) + column;
      const float d = widen(dy[at]);
      plain += d;
      if (a.normed == nullptr) continue;
      const float mean = a.mean == nullptr ? 0.0f : a.mean[row];
      normed += d * ((widen(x[at]) - mean) * a.rstd[row]);
    }
  plain = column_total(plain);
  normed = column_total(normed);
  if (threadIdx.x >= kColumnsPerBlock || column >= a.columns) return;
  partial[2 * row_block * a.columns + column] = normed;
  partial[(2 * row_block + 1) * a.columns + column] = plain;
}

/// A block adds up the parts of some columns of one of the sums.
__global__ void add_partials(PartialSums a) {
  const int64_t column_blocks = (a.columns + kColumnsPerBlock - 1) / kColumnsPerBlock;
  const int64_t sum = blockIdx.x / column_blocks;
  const int64_t column = blockIdx.x % column_blocks * kColumnsPerBlock + threadIdx.x % kColumnsPerBlock;
  float* const to = sum == 0 ? a.to[0] : a.to[1];
  float total = 0;
  if (to != nullptr && column < a.columns)
    for (int64_t part = threadIdx.x / kColumnsPerBlock; part < a.parts; part += kRowsAtOnce)
      total += a.partial[(part * a.sums + sum) * a.columns + column];
  total = column_total(total);
  if (to != nullptr && threadIdx.x < kColumnsPerBlock && column < a.columns) to[column] += total;
}

// ---- sums of a whole tensor

struct Itself {
  __device__ double operator()(double x) const { return x; }
};
struct Square {
  __device__ double operator()(double x) const { return x * x; }
};

template <class Term, class T>
__global__ void sum_terms(const T* x, int64_t n, Term term, double* partial) {
  const int64_t stride = int64_t{blockDim.x} * gridDim.x;
  double sum = 0;
  for (int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n; i += stride)
    sum += term(static_cast<double>(widen(x[i])));
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

/// What is added up, and by which factors it is multiplied then.
struct Total {
  double* out;
  const double* partial;
  int64_t blocks;
  double scale;
  const float* scale_at;  // may be null
};

__global__ void add_total(Total a) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < a.blocks; i += blockDim.x) sum += a.partial[i];
  sum = block_sum(sum);
  const double scale = a.scale_at == nullptr ? a.scale : a.scale * static_cast<double>(*a.scale_at);
  if (threadIdx.x == 0) *a.out += scale * sum;
}

}  // namespace

void launch_column_sums(cudaStream_t stream, Storage storage, const ColumnSums& a, void* workspace) {
  const RowCut cut(a.rows);
  float* const partial = static_cast<float*>(workspace);
  with_storage(storage, [&](auto element) {
    launch(stream, cut.blocks * blocks_for(a.columns, kColumnsPerBlock), 0, column_sums<decltype(element)>, a,
           cut.size, partial);
  });
  launch_add_partials(
      stream,
      {.to = {a.normed, a.plain}, .partial = partial, .parts = cut.blocks, .columns = a.columns, .sums = 2});
}

void launch_add_partials(cudaStream_t stream, const PartialSums& a) {
  launch(stream, a.sums * blocks_for(a.columns, kColumnsPerBlock), 0, add_partials, a);
}

void launch_sum_squares(cudaStream_t stream, Storage storage, double* out, const void* x, int64_t n,
                        void* workspace) {
  double* const partial = static_cast<double*>(workspace);
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    launch(stream, sum_blocks(n), 0, sum_terms<Square, T>, static_cast<const T*>(x), n, Square{}, partial);
  });
  launch(stream, 1, 0, add_total, Total{out, partial, sum_blocks(n), 1.0, nullptr});
}

void launch_scaled_sum(cudaStream_t stream, const ScaledSumArgs& a, void* workspace) {
  double* const partial = static_cast<double*>(workspace);
  launch(stream, sum_blocks(a.n), 0, sum_terms<Itself, float>, a.x, a.n, Itself{}, partial);
  launch(stream, 1, 0, add_total, Total{a.out, partial, sum_blocks(a.n), a.scale, a.scale_at});
}

}  // namespace megalith::cuda
