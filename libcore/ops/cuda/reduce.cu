#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/kernel_tools.h"

// Sums over rows and over whole tensors, and the tables' gradients. The order of summation depends only on
// the sizes, so that a run is reproducible bit for bit.

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

/// Writes each row block's sums of dy and of dy xhat to `partial` [row block][2][columns].
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
      const float d = widen(dy[row * a.columns + column]);
      plain += d;
      if (a.normed == nullptr) continue;
      const float mean = a.mean == nullptr ? 0.0f : a.mean[row];
      normed += d * ((widen(x[row * a.columns + column]) - mean) * a.rstd[row]);
    }
  plain = column_total(plain);
  normed = column_total(normed);
  if (threadIdx.x >= kColumnsPerBlock || column >= a.columns) return;
  partial[2 * row_block * a.columns + column] = plain;
  partial[(2 * row_block + 1) * a.columns + column] = normed;
}

__global__ void add_partial_sums(ColumnSums a, int64_t row_blocks, const float* partial) {
  const int64_t column = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (column >= a.columns) return;
  float plain = 0, normed = 0;
  for (int64_t block = 0; block < row_blocks; ++block) {
    plain += partial[2 * block * a.columns + column];
    normed += partial[(2 * block + 1) * a.columns + column];
  }
  if (a.plain != nullptr) a.plain[column] += plain;
  if (a.normed != nullptr) a.normed[column] += normed;
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

__global__ void add_total(double* out, const double* partial, int64_t blocks, double scale) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < blocks; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum);
  if (threadIdx.x == 0) *out += scale * sum;
}

// ---- embedding

template <class T>
__global__ void embedding(EmbeddingArgs a) {
  const int64_t row = blockIdx.x, id = a.ids[row] - int64_t{a.first_id};
  const bool mine = id >= 0 && id < a.vocabulary;
  const T* const entry = static_cast<const T*>(a.table) + (mine ? id * a.columns : 0);
  const int64_t place = a.spans.at(row / a.batch) - (a.starts == nullptr ? 0 : a.starts[row]);
  const T* const position =
      a.positions == nullptr ? nullptr : static_cast<const T*>(a.positions) + place * a.columns;
  T* const y = static_cast<T*>(a.y) + row * a.columns;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    const float value = mine ? widen(entry[i]) : 0.0f;
    y[i] = narrow<T>(position == nullptr ? value : value + widen(position[i]));
  }
}

/// One block per row of dy. The block of an id's first occurrence adds up all rows of the id in order; the
/// blocks of later occurrences do nothing. The ids are searched in tiles of one per thread, and the matching
/// rows are listed in shared memory.
template <class T>
__global__ void table_grad(EmbeddingGradArgs a) {
  const int64_t row = blockIdx.x;
  const int32_t id = a.ids[row];
  const int64_t entry = id - int64_t{a.first_id};
  if (entry < 0 || entry >= a.vocabulary) return;
  for (int64_t first = 0; first < row; first += blockDim.x) {
    const int64_t place = first + threadIdx.x;
    if (__syncthreads_or(place < row && a.ids[place] == id)) return;
  }
  __shared__ bool matches[kThreads];
  float* const sums = a.dtable + entry * a.columns;
  for (int64_t first = row; first < a.rows; first += blockDim.x) {
    const int64_t place = first + threadIdx.x;
    const bool match = place < a.rows && a.ids[place] == id;
    matches[threadIdx.x] = match;
    if (!__syncthreads_or(match)) continue;
    for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
      float sum = sums[i];
      for (unsigned j = 0; j < blockDim.x; ++j)
        if (matches[j]) sum += widen(static_cast<const T*>(a.dy)[(first + j) * a.columns + i]);
      sums[i] = sum;
    }
    __syncthreads();
  }
}

/// One block per row of positions, where each row has its own.
template <class T>
__global__ void position_grad(EmbeddingGradArgs a) {
  const int64_t row = blockIdx.x;
  const T* const dy = static_cast<const T*>(a.dy) + row * a.batch * a.columns;
  float* const sums = a.dpositions + a.spans.at(row) * a.columns;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    float sum = sums[i];
    for (int64_t sequence = 0; sequence < a.batch; ++sequence) sum += widen(dy[sequence * a.columns + i]);
    sums[i] = sum;
  }
}

/// One block per position, counted within documents, which adds up the rows that have it.
template <class T>
__global__ void document_position_grad(EmbeddingGradArgs a) {
  const int64_t position = blockIdx.x;
  float* const sums = a.dpositions + position * a.columns;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    float sum = sums[i];
    for (int64_t row = a.spans.row_from(position) * a.batch; row < a.rows; ++row)
      if (a.spans.at(row / a.batch) - a.starts[row] == position)
        sum += widen(static_cast<const T*>(a.dy)[row * a.columns + i]);
    sums[i] = sum;
  }
}

}  // namespace

void launch_column_sums(cudaStream_t stream, Storage storage, const ColumnSums& a, void* workspace) {
  const RowCut cut(a.rows);
  float* const partial = static_cast<float*>(workspace);
  with_activation(storage, [&](auto element) {
    launch(stream, cut.blocks * blocks_for(a.columns, kColumnsPerBlock), 0, column_sums<decltype(element)>, a,
           cut.size, partial);
  });
  launch(stream, blocks_for(a.columns, kThreads), 0, add_partial_sums, a, cut.blocks,
         static_cast<const float*>(partial));
}

void launch_sum_squares(cudaStream_t stream, Storage storage, double* out, const void* x, int64_t n,
                        void* workspace) {
  double* const partial = static_cast<double*>(workspace);
  with_activation(storage, [&](auto element) {
    using T = decltype(element);
    launch(stream, sum_blocks(n), 0, sum_terms<Square, T>, static_cast<const T*>(x), n, Square{}, partial);
  });
  launch(stream, 1, 0, add_total, out, static_cast<const double*>(partial), sum_blocks(n), 1.0);
}

void launch_scaled_sum(cudaStream_t stream, const ScaledSumArgs& a, void* workspace) {
  double* const partial = static_cast<double*>(workspace);
  launch(stream, sum_blocks(a.n), 0, sum_terms<Itself, float>, a.x, a.n, Itself{}, partial);
  launch(stream, 1, 0, add_total, a.out, static_cast<const double*>(partial), sum_blocks(a.n), a.scale);
}

void launch_embedding(cudaStream_t stream, Storage storage, const EmbeddingArgs& args) {
  with_activation(storage,
                  [&](auto element) { launch(stream, args.rows, 0, embedding<decltype(element)>, args); });
}

void launch_embedding_grad(cudaStream_t stream, Storage storage, const EmbeddingGradArgs& args) {
  with_activation(storage, [&](auto element) {
    using T = decltype(element);
    launch(stream, args.rows, 0, table_grad<T>, args);
    const int64_t rows = args.rows / args.batch;
    if (args.dpositions == nullptr || rows == 0) return;
    if (args.starts == nullptr)
      launch(stream, rows, 0, position_grad<T>, args);
    else
      launch(stream, args.spans.at(rows - 1) + 1, 0, document_position_grad<T>, args);
  });
}

}  // namespace megalith::cuda
