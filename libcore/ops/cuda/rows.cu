#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/kernel_tools.h"

// Normalizations and the loss for rows of any length, at any address: one row per block, element by element.
// A block reads the row once for each sum and once more to write the result; all reads but the first come
// from the cache.

namespace megalith::cuda {
namespace {

template <class T>
__global__ void norm(NormArgs a) {
  const int64_t row = blockIdx.x, place = place_of(a.part, row, a.columns);
  const float count = static_cast<float>(a.columns);
  const T *const x = static_cast<const T*>(a.x) + place, *const w = static_cast<const T*>(a.w);
  const T* const b = static_cast<const T*>(a.b);
  T* const y = static_cast<T*>(a.y) + place;
  float mean = 0;
  if (a.centred) {
    float sum = 0;
    for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) sum += widen(x[i]);
    mean = block_sum(sum) / count;
  }
  float squares = 0;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    const float centred = widen(x[i]) - mean;
    squares += centred * centred;
  }
  const float rstd = 1.0f / sqrtf(block_sum(squares) / count + a.eps);
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    const float value = (widen(x[i]) - mean) * rstd * widen(w[i]);
    y[i] = narrow<T>(b == nullptr ? value : value + widen(b[i]));
  }
  if (threadIdx.x != 0) return;
  if (a.mean != nullptr) a.mean[row] = mean;
  if (a.rstd != nullptr) a.rstd[row] = rstd;
}

/// dx = rstd (g - mean(g) - xhat mean(g xhat)) (+ add), g = dy w; RmsNorm has no mean(g).
template <class T>
__global__ void norm_grad(NormGradArgs a) {
  const int64_t row = blockIdx.x, place = place_of(a.part, row, a.columns);
  const float count = static_cast<float>(a.columns);
  const T *const dy = static_cast<const T*>(a.dy) + place, *const x = static_cast<const T*>(a.x) + place;
  const T* const w = static_cast<const T*>(a.w);
  const T* const add = a.add == nullptr ? nullptr : static_cast<const T*>(a.add) + place;
  T* const dx = static_cast<T*>(a.dx) + place;  // may share dy's or add's memory
  const bool centred = a.mean != nullptr;
  const float mean = centred ? a.mean[row] : 0.0f, rstd = a.rstd[row];
  float sum = 0, product = 0;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    const float g = widen(dy[i]) * widen(w[i]);
    sum += g;
    product += g * ((widen(x[i]) - mean) * rstd);
  }
  const float mean_g = centred ? block_sum(sum) / count : 0.0f, mean_product = block_sum(product) / count;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    const float g = widen(dy[i]) * widen(w[i]), xhat = (widen(x[i]) - mean) * rstd;
    const float d = rstd * (g - mean_g - xhat * mean_product);
    dx[i] = narrow<T>(add == nullptr ? d : d + widen(add[i]));
  }
}

// ---- norms of all heads together

/// What a column of a packed row belongs to, and its place in the weight of that kind.
struct HeadColumn {
  int kind;  // 0: queries, 1: keys, 2: values, which have no weight
  int64_t weight;
};
__device__ HeadColumn head_column(const HeadsArgs& a, int64_t column) {
  const int64_t size = (a.r + 2) * a.head, group = column / size, at = column % size, keys = a.r * a.head;
  if (at < keys) return {0, group * keys + at};
  if (at < keys + a.head) return {1, group * a.head + at - keys};
  return {2, 0};
}
template <class T>
__device__ float head_weight(const HeadsArgs& a, const HeadColumn& column) {
  return widen(static_cast<const T*>(column.kind == 0 ? a.q_w : a.k_w)[column.weight]);
}

template <class T>
__global__ void head_sums(HeadSumsArgs a) {
  const int64_t row = blockIdx.x, place = row * a.columns();
  const T* const x = static_cast<const T*>(a.x) + place;
  const T* const d = a.d == nullptr ? nullptr : static_cast<const T*>(a.d) + place;
  float queries = 0, keys = 0;
  for (int64_t i = threadIdx.x; i < a.columns(); i += blockDim.x) {
    const HeadColumn column = head_column(a, i);
    if (column.kind == 2) continue;
    const float term = widen(x[i]) * (d == nullptr ? widen(x[i]) : widen(d[i]) * head_weight<T>(a, column));
    (column.kind == 0 ? queries : keys) += term;
  }
  queries = block_sum(queries);
  keys = block_sum(keys);
  if (threadIdx.x != 0) return;
  a.sums[row] = queries;
  a.sums[a.rows + row] = keys;
}

template <class T>
__global__ void heads_norm(HeadsNormArgs a) {
  const int64_t row = blockIdx.x, place = row * a.columns();
  const T* const x = static_cast<const T*>(a.x) + place;
  T* const y = static_cast<T*>(a.y) + place;
  const float rstd[2] = {a.rstd(0, row), a.rstd(1, row)};
  for (int64_t i = threadIdx.x; i < a.columns(); i += blockDim.x) {
    const HeadColumn column = head_column(a, i);
    y[i] = column.kind == 2 ? x[i] : narrow<T>(widen(x[i]) * rstd[column.kind] * head_weight<T>(a, column));
  }
}

template <class T>
__global__ void heads_norm_grad(HeadsNormGradArgs a) {
  const int64_t row = blockIdx.x, place = row * a.columns();
  const T* const x = static_cast<const T*>(a.x) + place;
  T* const d = static_cast<T*>(a.y) + place;
  const float rstd[2] = {a.rstd(0, row), a.rstd(1, row)};
  const float along[2] = {a.dots[row] * rstd[0] * rstd[0] / a.q_width,
                          a.dots[a.rows + row] * rstd[1] * rstd[1] / a.k_width};
  for (int64_t i = threadIdx.x; i < a.columns(); i += blockDim.x) {
    const HeadColumn column = head_column(a, i);
    if (column.kind == 2) continue;
    const float g = widen(d[i]) * head_weight<T>(a, column);
    d[i] = narrow<T>(rstd[column.kind] * (g - widen(x[i]) * along[column.kind]));
  }
}

/// A thread sums the weight's gradient of one column over a block of rows: partial [row block][columns].
template <class T>
__global__ void head_weight_sums(HeadsNormGradArgs a, int64_t rows_per_block, float* partial) {
  const int64_t column_blocks = (a.columns() + blockDim.x - 1) / blockDim.x;
  const int64_t row_block = blockIdx.x / column_blocks;
  const int64_t i = blockIdx.x % column_blocks * blockDim.x + threadIdx.x;
  if (i >= a.columns()) return;
  const HeadColumn column = head_column(a, i);
  if (column.kind == 2) return;
  const int64_t begin = row_block * rows_per_block;
  const int64_t end = begin + rows_per_block < a.rows ? begin + rows_per_block : a.rows;
  float sum = 0;
  for (int64_t row = begin; row < end; ++row) {
    const int64_t at = row * a.columns() + i;
    sum += widen(static_cast<const T*>(a.y)[at]) * widen(static_cast<const T*>(a.x)[at]) *
           a.rstd(column.kind, row);
  }
  partial[row_block * a.columns() + i] = sum;
}

/// Adds the sums of the row blocks, in order, to the weights' gradients.
__global__ void add_head_weights(HeadsNormGradArgs a, const float* partial, int64_t row_blocks) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= a.columns()) return;
  const HeadColumn column = head_column(a, i);
  float* const to = column.kind == 2 ? nullptr : column.kind == 0 ? a.dq_w : a.dk_w;
  if (to == nullptr) return;
  float sum = 0;
  for (int64_t block = 0; block < row_blocks; ++block) sum += partial[block * a.columns() + i];
  to[column.weight] += sum;
}

template <class T>
__global__ void softmax_stats(SoftmaxArgs a) {
  const int64_t row = blockIdx.x;
  const T* const x = static_cast<const T*>(a.logits) + row * a.stride;
  float own_max = -INFINITY, sum = 0;
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) own_max = fmaxf(own_max, widen(x[i]));
  const float max = block_max(own_max);
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) sum += expf(widen(x[i]) - max);
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  a.max[row] = max;
  a.sum_exp[row] = sum;
}

__global__ void softmax_rescale(float* sum_exp, const float* from, const float* to, int64_t n) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < n) sum_exp[i] *= expf(from[i] - to[i]);
}

template <class T>
__global__ void cross_entropy(CrossEntropyArgs a) {
  const int64_t row = blockIdx.x;
  T* const x = static_cast<T*>(a.logits) + row * a.stride;
  const int64_t target = int64_t{a.targets[row]} - a.first_id;
  const bool mine = target >= 0 && target < a.columns;
  const float weight = a.mask == nullptr ? 1.0f : a.mask[row], max = a.max[row], sum = a.sum_exp[row];
  const float at_target = mine ? widen(x[target]) : 0.0f;
  if (threadIdx.x == 0) a.loss[row] = mine && weight != 0 ? weight * (logf(sum) + max - at_target) : 0.0f;
  if (!a.want_grad) return;
  __syncthreads();  // every thread must have read the target's logit before one of them overwrites it
  const float factor = loss_scale(a) * weight;
  for (int64_t i = threadIdx.x; i < a.stride; i += blockDim.x) {
    float grad = 0;
    if (weight != 0 && i < a.columns)
      grad = factor * (expf(widen(x[i]) - max) / sum - (mine && i == target ? 1.0f : 0.0f));
    x[i] = narrow<T>(grad);
  }
}

}  // namespace

void launch_norm(cudaStream_t stream, Storage storage, const NormArgs& args) {
  if (launch_team_norm(stream, storage, args)) return;
  NormArgs plain = args;
  if (args.residual != nullptr) {
    launch_dropout(stream, storage,
                   {.y = args.sum,
                    .x = args.x,
                    .residual = args.residual,
                    .rows = args.rows,
                    .columns = args.columns,
                    .first_column = 0,
                    .mask = args.mask});
    plain.x = args.sum;
  }
  with_storage(storage, [&](auto element) { launch(stream, args.rows, 0, norm<decltype(element)>, plain); });
}

void launch_norm_grad(cudaStream_t stream, Storage storage, const NormGradArgs& args,
                      const NormWeightGrads& weights, void* workspace) {
  if (launch_team_norm_grad(stream, storage, args, weights, workspace)) return;
  if (weights.dw != nullptr || weights.db != nullptr)  // first: dx may share dy's memory
    launch_column_sums(stream, storage,
                       {.plain = weights.db,
                        .normed = weights.dw,
                        .dy = args.dy,
                        .x = args.x,
                        .mean = args.mean,
                        .rstd = args.rstd,
                        .rows = args.rows,
                        .columns = args.columns,
                        .part = args.part},
                       workspace);
  with_storage(storage,
               [&](auto element) { launch(stream, args.rows, 0, norm_grad<decltype(element)>, args); });
}

void launch_head_sums(cudaStream_t stream, Storage storage, const HeadSumsArgs& args) {
  with_storage(storage,
               [&](auto element) { launch(stream, args.rows, 0, head_sums<decltype(element)>, args); });
}

void launch_heads_norm(cudaStream_t stream, Storage storage, const HeadsNormArgs& args) {
  with_storage(storage,
               [&](auto element) { launch(stream, args.rows, 0, heads_norm<decltype(element)>, args); });
}

void launch_heads_norm_grad(cudaStream_t stream, Storage storage, const HeadsNormGradArgs& args,
                            void* workspace) {
  if (args.dq_w != nullptr || args.dk_w != nullptr) {  // first: the gradient of x overwrites what it reads
    const RowCut cut(args.rows);
    const int64_t columns = blocks_for(args.columns(), kThreads);
    auto* const partial = static_cast<float*>(workspace);
    with_storage(storage, [&](auto element) {
      launch(stream, cut.blocks * columns, 0, head_weight_sums<decltype(element)>, args, cut.size, partial);
    });
    launch(stream, columns, 0, add_head_weights, args, static_cast<const float*>(partial), cut.blocks);
  }
  with_storage(storage,
               [&](auto element) { launch(stream, args.rows, 0, heads_norm_grad<decltype(element)>, args); });
}

void launch_softmax_stats(cudaStream_t stream, Storage storage, const SoftmaxArgs& args) {
  with_storage(storage,
               [&](auto element) { launch(stream, args.rows, 0, softmax_stats<decltype(element)>, args); });
}

void launch_softmax_rescale(cudaStream_t stream, float* sum_exp, const float* from, const float* to,
                            int64_t n) {
  launch(stream, blocks_for(n, kThreads), 0, softmax_rescale, sum_exp, from, to, n);
}

void launch_cross_entropy(cudaStream_t stream, Storage storage, const CrossEntropyArgs& args) {
  with_storage(storage,
               [&](auto element) { launch(stream, args.rows, 0, cross_entropy<decltype(element)>, args); });
}

}  // namespace megalith::cuda
