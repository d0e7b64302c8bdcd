#include "libcore/ops/cuda/attention_tools.h"

// Flash attention (Dao et al., 2022) in fp32: tiles of queries against tiles of keys in shared memory, with a
// running softmax. The threads of a block form a 16 x 16 grid. In a tile of scores, thread (y, x) holds the
// rows y, y + 16, ... and the columns x, x + 16, .... In a tile of heads, it holds the rows y, y + 16, ...
// and four adjacent columns of each 64. Compiled for heads of up to 64, 128 and 256 columns; a narrower head
// is padded with zeros. Every kernel needs at most 99 KiB of shared memory, so that it runs on any device of
// compute capability 8.0 or above.

namespace megalith::cuda {
namespace {

constexpr int kSide = 16;
static_assert(kSide * kSide == kThreads);

/// Sizes of the tiles: kWidth columns of a head, kTile queries or keys.
template <int kWidth_, int kTile_>
struct Tiles {
  static constexpr int kWidth = kWidth_, kTile = kTile_;
  static constexpr int kRows = kTile / kSide;          // rows of a tile that each thread holds
  static constexpr int kParts = kWidth / (4 * kSide);  // groups of four columns that each thread holds
  static constexpr int kHeadStride = kWidth + 4;       // so that neighbouring rows begin in different banks
  static constexpr int kScoreStride = kTile + 4;
  static constexpr int kHeadFloats = kTile * kHeadStride, kScoreFloats = kTile * kScoreStride;
};

using Quad = Vector<4, float>;

__device__ inline unsigned thread_x() {
  return threadIdx.x % kSide;
}
__device__ inline unsigned thread_y() {
  return threadIdx.x / kSide;
}

/// Rows of one head in global memory: element (i, column) at data[offset + i * stride + column].
struct HeadRows {
  Storage storage;
  const void* data;
  int64_t offset, stride;
};

/// Loads a tile [kTile][kHeadStride] of rows from `first` on, times factor; zeros beyond `rows` and `head`.
template <class T>
__device__ void load_tile(float* tile, const HeadRows& from, int64_t first, int64_t rows, int64_t head,
                          float factor) {
  for (int i = static_cast<int>(threadIdx.x); i < T::kTile * T::kWidth; i += kThreads) {
    const int row = i / T::kWidth, column = i % T::kWidth;
    const bool there = first + row < rows && column < head;
    tile[row * T::kHeadStride + column] =
        there ? factor * load(from.storage, from.data, from.offset + (first + row) * from.stride + column)
              : 0.0f;
  }
}

/// scores[i][j] = a row (y + 16 i) . b row (x + 16 j).
template <class T>
__device__ void multiply_rows(float (&scores)[T::kRows][T::kRows], const float* a, const float* b) {
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) MEGALITH_UNROLL for (int j = 0; j < T::kRows; ++j)
      scores[i][j] = 0;
  MEGALITH_UNROLL_2 for (int column = 0; column < T::kWidth; column += 4) {
    Quad left[T::kRows], right[T::kRows];
    MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
      left[i] = vector_at<4>(a + (thread_y() + kSide * i) * T::kHeadStride + column);
      right[i] = vector_at<4>(b + (thread_x() + kSide * i) * T::kHeadStride + column);
    }
    MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) MEGALITH_UNROLL for (int j = 0; j < T::kRows; ++j)
        MEGALITH_UNROLL for (int k = 0; k < 4; ++k) scores[i][j] += left[i].at[k] * right[j].at[k];
  }
}

/// A thread's part of a tile of heads.
template <class T>
struct HeadSums {
  Quad at[T::kRows][T::kParts];

  __device__ void clear() {
    MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i)
        MEGALITH_UNROLL for (int part = 0; part < T::kParts; ++part) at[i][part] = {};
  }
  __device__ void scale_row(int i, float factor) {
    MEGALITH_UNROLL for (int part = 0; part < T::kParts; ++part) MEGALITH_UNROLL for (int k = 0; k < 4; ++k)
        at[i][part]
            .at[k] *= factor;
  }
  /// Adds to each row y + 16 i the sum over j of weights[j * depth + (y + 16 i) * row] heads[j].
  __device__ void add_product(const float* weights, int row, int depth, const float* heads) {
    MEGALITH_UNROLL_2 for (int j = 0; j < T::kTile; ++j) {
      Quad line[T::kParts];
      MEGALITH_UNROLL for (int part = 0; part < T::kParts; ++part) line[part] =
          vector_at<4>(heads + j * T::kHeadStride + 4 * (thread_x() + kSide * part));
      MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
        const float weight = weights[j * depth + static_cast<int>(thread_y() + kSide * i) * row];
        MEGALITH_UNROLL for (int part = 0; part < T::kParts; ++part)
            MEGALITH_UNROLL for (int k = 0; k < 4; ++k) at[i][part]
                .at[k] += weight * line[part].at[k];
      }
    }
  }
  /// Stores this thread's columns of its row i, times factor, to the head that begins at element `place`.
  __device__ void store_row(int i, Storage storage, void* data, int64_t place, int64_t head,
                            float factor) const {
    MEGALITH_UNROLL for (int part = 0; part < T::kParts; ++part) MEGALITH_UNROLL for (int k = 0; k < 4; ++k) {
      const int column = static_cast<int>(4 * (thread_x() + kSide * part)) + k;
      if (column < head) store(storage, data, place + column, at[i][part].at[k] * factor);
    }
  }
};

/// The sum over the 16 threads that share a row.
__device__ inline float row_sum(float value) {
  for (int apart = kSide / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(kWholeWarp, value, apart);
  return value;
}
__device__ inline float row_max(float value) {
  for (int apart = kSide / 2; apart > 0; apart /= 2)
    value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, apart));
  return value;
}

// ---- forward

/// The block's shared memory: queries, keys (later values), probabilities.
template <class T>
constexpr size_t kForwardBytes = (2 * T::kHeadFloats + T::kScoreFloats) * sizeof(float);

/// The rows' running maximum and sum of exponentials.
template <class T>
struct SoftmaxRows {
  float max[T::kRows], sum[T::kRows];
};

/// Turns scores into probabilities relative to the new maxima, stores them in shared memory, and rescales the
/// output so far.
template <class T>
// NOLINTNEXTLINE(readability-function-size): eight arguments in registers
__device__ void absorb(const float (&scores)[T::kRows][T::kRows], int64_t first, int64_t key,
                       const HeadView& view, SoftmaxRows<T>& rows, HeadSums<T>& out, float* probabilities) {
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
    const int64_t query = first + (thread_y() + kSide * i);
    const KeyRange seen = keys_of(view.shape, view.place, query);
    float new_max = rows.max[i], total = 0;
    MEGALITH_UNROLL for (int j = 0; j < T::kRows; ++j) if (seen.has(key + (thread_x() + kSide * j))) new_max =
        fmaxf(new_max, scores[i][j]);
    new_max = row_max(new_max);
    // A row that has seen no key so far keeps a maximum of minus infinity, from which nothing is subtracted.
    const float base = new_max == -INFINITY ? 0.0f : new_max;
    MEGALITH_UNROLL for (int j = 0; j < T::kRows; ++j) {
      const int64_t column = key + (thread_x() + kSide * j);
      float p = seen.has(column) ? expf(scores[i][j] - base) : 0.0f;
      total += p;
      if (p != 0) p *= view.mask.at(query, column);
      probabilities[(thread_y() + kSide * i) * T::kScoreStride + thread_x() + kSide * j] = p;
    }
    const float shrink = expf(rows.max[i] - base);  // is 0 for the first tile of keys
    rows.sum[i] = rows.sum[i] * shrink + row_sum(total);
    rows.max[i] = new_max;
    out.scale_row(i, shrink);
  }
}

/// Each block computes one tile of queries of one head. The tiles that see the most keys come first, so that
/// the last block to end is a short one.
template <class T>
__global__ void __launch_bounds__(kThreads, 1) attention_forward(AttentionArgs a, Storage storage) {
  MEGALITH_DYNAMIC_SHARED(shared);
  float *const queries = shared, *const heads = queries + T::kHeadFloats, *const p = heads + T::kHeadFloats;
  const AttentionShape& s = a.shape;
  const HeadView view(s, a.mask, blockIdx.x % s.heads());
  const HeadPlace& place = view.place;
  const int64_t tiles = (s.queries + T::kTile - 1) / T::kTile;
  const int64_t first = (tiles - 1 - blockIdx.x / s.heads()) * T::kTile;
  const int64_t last = (first + T::kTile < s.queries ? first + T::kTile : s.queries) - 1;
  const KeyRange keys = keys_of(s, place, first, last);
  SoftmaxRows<T> rows;
  HeadSums<T> out;
  out.clear();
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
    rows.max[i] = -INFINITY;
    rows.sum[i] = 0;
  }
  load_tile<T>(queries, {storage, a.q, place.q(s), s.q.position}, first, s.queries, s.head, a.scale);
  for (int64_t key = keys.first / T::kTile * T::kTile; key <= keys.last; key += T::kTile) {
    load_tile<T>(heads, {a.kv_storage, a.k, place.kv(s), s.kv.position}, key, keys.last + 1, s.head, 1);
    __syncthreads();
    float scores[T::kRows][T::kRows];
    multiply_rows<T>(scores, queries, heads);
    absorb<T>(scores, first, key, view, rows, out, p);
    __syncthreads();
    load_tile<T>(heads, {a.kv_storage, a.v, place.kv(s), s.kv.position}, key, keys.last + 1, s.head, 1);
    __syncthreads();
    out.add_product(p, T::kScoreStride, 1, heads);
    __syncthreads();
  }
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
    const int64_t query = first + (thread_y() + kSide * i);
    if (query > last) continue;
    out.store_row(i, storage, a.out, query * s.heads() * s.head + place.out(s), s.head, 1 / rows.sum[i]);
    if (a.lse != nullptr && thread_x() == 0) a.lse[place.row(s) + query] = rows.max[i] + logf(rows.sum[i]);
  }
}

// ---- backward

/// The block's shared memory: queries, keys, values, gradient of the output, probabilities, gradient of the
/// scores.
template <class T>
constexpr size_t kBackwardBytes = (4 * T::kHeadFloats + 2 * T::kScoreFloats) * sizeof(float);

template <class T>
struct GradTiles {
  float *queries, *keys, *values, *dout, *p, *ds;
  __device__ explicit GradTiles(float* shared)
      : queries(shared),
        keys(queries + T::kHeadFloats),
        values(keys + T::kHeadFloats),
        dout(values + T::kHeadFloats),
        p(dout + T::kHeadFloats),
        ds(p + T::kScoreFloats) {}
};

/// Computes delta = dout . out for each row of each head, which equals the sum over keys of p dP. One warp
/// per row.
__global__ void output_products(AttentionGradArgs a, Storage storage) {
  const AttentionShape& s = a.shape;
  const int64_t number = int64_t{blockIdx.x} * (kThreads / 32) + threadIdx.x / 32;
  const bool there = number < s.heads() * s.queries;
  const int64_t head = there ? number / s.queries : 0, query = there ? number % s.queries : 0;
  const int64_t place = (query * s.heads() + head) * s.head;
  float sum = 0;
  for (int64_t i = threadIdx.x % 32; i < s.head; i += 32)
    sum += load(storage, a.dout, place + i) * load(storage, a.out, place + i);
  sum = warp_sum(sum);
  if (there && threadIdx.x % 32 == 0) a.delta[number] = sum;
}

/// Computes dS and the probabilities, with dropout applied as in the forward pass, from the four tiles of
/// heads.
template <class T>
__device__ void score_grads(const AttentionGradArgs& a, const GradTiles<T>& tiles, const HeadView& view,
                            int64_t first, int64_t key) {
  float scores[T::kRows][T::kRows], dp[T::kRows][T::kRows];
  multiply_rows<T>(scores, tiles.queries, tiles.keys);
  multiply_rows<T>(dp, tiles.dout, tiles.values);
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
    const int64_t query = first + (thread_y() + kSide * i);
    const bool there = query < a.shape.queries;
    const KeyRange seen = keys_of(view.shape, view.place, query);
    const float lse = there ? a.lse[view.place.row(a.shape) + query] : 0.0f,
                delta = there ? a.delta[view.place.row(a.shape) + query] : 0.0f;
    MEGALITH_UNROLL for (int j = 0; j < T::kRows; ++j) {
      const int64_t column = key + (thread_x() + kSide * j);
      const float p = seen.has(column) ? expf(scores[i][j] - lse) : 0.0f,
                  factor = seen.has(column) ? view.mask.at(query, column) : 0.0f;
      const unsigned at = (thread_y() + kSide * i) * T::kScoreStride + thread_x() + kSide * j;
      tiles.p[at] = p * factor;
      tiles.ds[at] = p * (dp[i][j] * factor - delta);
    }
  }
}

template <class T>
__device__ void load_queries(const AttentionGradArgs& a, Storage storage, const GradTiles<T>& tiles,
                             const HeadPlace& place, int64_t first) {
  const AttentionShape& s = a.shape;
  load_tile<T>(tiles.queries, {storage, a.q, place.q(s), s.q.position}, first, s.queries, s.head, a.scale);
  load_tile<T>(tiles.dout, {storage, a.dout, place.out(s), s.heads() * s.head}, first, s.queries, s.head, 1);
}

template <class T>
__device__ void load_keys(const AttentionGradArgs& a, Storage storage, const GradTiles<T>& tiles,
                          const HeadPlace& place, int64_t key) {
  const AttentionShape& s = a.shape;
  load_tile<T>(tiles.keys, {storage, a.k, place.kv(s), s.kv.position}, key, s.keys, s.head, 1);
  load_tile<T>(tiles.values, {storage, a.v, place.kv(s), s.kv.position}, key, s.keys, s.head, 1);
}

/// Each block computes dK and dV for one tile of keys of one group. It adds up the contributions of the
/// group's query heads in order, so that sums do not depend on timing.
template <class T>
__global__ void __launch_bounds__(kThreads, 1) attention_key_grad(AttentionGradArgs a, Storage storage) {
  MEGALITH_DYNAMIC_SHARED(shared);
  const GradTiles<T> tiles(shared);
  const AttentionShape& s = a.shape;
  const int64_t group = blockIdx.x % (s.batch * s.groups), key = blockIdx.x / (s.batch * s.groups) * T::kTile;
  HeadSums<T> dk, dv;
  dk.clear();
  dv.clear();
  load_keys<T>(a, storage, tiles, HeadPlace(s, group * s.r), key);
  const int64_t begin = s.rows.row_from(key), end = s.queries_before(key + T::kTile, group / s.groups);
  for (int64_t head = group * s.r; head < (group + 1) * s.r; ++head)
    for (int64_t first = begin; first < end; first += T::kTile) {
      const HeadView view(s, a.mask, head);
      load_queries<T>(a, storage, tiles, view.place, first);
      __syncthreads();
      score_grads<T>(a, tiles, view, first, key);
      __syncthreads();
      dv.add_product(tiles.p, 1, T::kScoreStride, tiles.dout);
      dk.add_product(tiles.ds, 1, T::kScoreStride, tiles.queries);  // the queries are scaled, so dk is too
      __syncthreads();
    }
  const int64_t offset = HeadPlace(s, group * s.r).kv(s);
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
    const int64_t row = key + (thread_y() + kSide * i);
    if (row >= s.keys) continue;
    dk.store_row(i, storage, a.dk, offset + row * s.kv.position, s.head, 1);
    dv.store_row(i, storage, a.dv, offset + row * s.kv.position, s.head, 1);
  }
}

/// Each block computes dQ for one tile of queries of one head.
template <class T>
__global__ void __launch_bounds__(kThreads, 1) attention_query_grad(AttentionGradArgs a, Storage storage) {
  MEGALITH_DYNAMIC_SHARED(shared);
  const GradTiles<T> tiles(shared);
  const AttentionShape& s = a.shape;
  const HeadView view(s, a.mask, blockIdx.x % s.heads());
  const HeadPlace& place = view.place;
  const int64_t count = (s.queries + T::kTile - 1) / T::kTile;
  const int64_t first = (count - 1 - blockIdx.x / s.heads()) * T::kTile;
  const int64_t last = (first + T::kTile < s.queries ? first + T::kTile : s.queries) - 1;
  const KeyRange keys = keys_of(s, place, first, last);
  HeadSums<T> dq;
  dq.clear();
  load_queries<T>(a, storage, tiles, place, first);
  for (int64_t key = keys.first / T::kTile * T::kTile; key <= keys.last; key += T::kTile) {
    load_keys<T>(a, storage, tiles, place, key);
    __syncthreads();
    score_grads<T>(a, tiles, view, first, key);
    __syncthreads();
    dq.add_product(tiles.ds, T::kScoreStride, 1, tiles.keys);
    __syncthreads();
  }
  MEGALITH_UNROLL for (int i = 0; i < T::kRows; ++i) {
    const int64_t row = first + (thread_y() + kSide * i);
    if (row < s.queries) dq.store_row(i, storage, a.dq, place.q(s) + row * s.q.position, s.head, a.scale);
  }
}

template <class T>
void launch_forward(cudaStream_t stream, Storage storage, const AttentionArgs& a) {
  launch(stream, blocks_for(a.shape.queries, T::kTile) * a.shape.heads(), kForwardBytes<T>,
         attention_forward<T>, a, storage);
}

template <class T>
void launch_backward(cudaStream_t stream, Storage storage, const AttentionGradArgs& a) {
  const AttentionShape& s = a.shape;
  launch(stream, blocks_for(s.keys, T::kTile) * s.batch * s.groups, kBackwardBytes<T>, attention_key_grad<T>,
         a, storage);
  launch(stream, blocks_for(s.queries, T::kTile) * s.heads(), kBackwardBytes<T>, attention_query_grad<T>, a,
         storage);
}

template <class To, class From>
__global__ void cache_append(CacheAppend a) {
  const AttentionShape& s = a.shape;
  const int64_t group = blockIdx.x % s.groups, sequence = blockIdx.x / s.groups % s.batch;
  const int64_t row = blockIdx.x / (s.groups * s.batch);
  const int64_t from = row * s.q.position + sequence * s.q.sequence + group * s.q.group;
  const int64_t to = s.rows.at(row) * s.kv.position + sequence * s.kv.sequence + group * s.kv.group;
  for (int64_t i = threadIdx.x; i < s.head; i += blockDim.x) {
    static_cast<To*>(a.k_cache)[to + i] = narrow<To>(widen(static_cast<const From*>(a.k)[from + i]));
    static_cast<To*>(a.v_cache)[to + i] = narrow<To>(widen(static_cast<const From*>(a.v)[from + i]));
  }
}

/// The offset in kv of element i of the prefix, for sequence 0.
__device__ inline int64_t place_in_kv(const PrefixArgs& a, int64_t i) {
  const int64_t column = i % a.head, row = i / a.head % a.positions,
                group = i / a.head / a.positions % a.groups;
  const int64_t kind = i / a.head / a.positions / a.groups;
  return ((row * a.batch * a.groups + group) * 2 + kind) * a.head + column;
}

/// One thread per element of the prefix.
template <class T>
__global__ void put_prefix(PrefixArgs a) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= 2 * a.groups * a.positions * a.head) return;
  T* const to = static_cast<T*>(a.kv) + place_in_kv(a, i);
  for (int64_t sequence = 0; sequence < a.batch; ++sequence)
    to[sequence * a.groups * 2 * a.head] = static_cast<const T*>(a.prefix)[i];
}
template <class T>
__global__ void prefix_grad(PrefixArgs a) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= 2 * a.groups * a.positions * a.head) return;
  const T* const from = static_cast<const T*>(a.kv) + place_in_kv(a, i);
  float sum = static_cast<const float*>(a.prefix)[i];
  for (int64_t sequence = 0; sequence < a.batch; ++sequence)
    sum += widen(from[sequence * a.groups * 2 * a.head]);
  static_cast<float*>(a.prefix)[i] = sum;
}
int64_t prefix_blocks(const PrefixArgs& a) {
  return blocks_for(2 * a.groups * a.positions * a.head, kThreads);
}

}  // namespace

void launch_put_prefix(cudaStream_t stream, Storage storage, const PrefixArgs& args) {
  with_storage(storage, [&](auto element) {
    launch(stream, prefix_blocks(args), 0, put_prefix<decltype(element)>, args);
  });
}

void launch_prefix_grad(cudaStream_t stream, Storage storage, const PrefixArgs& args) {
  with_storage(storage, [&](auto element) {
    launch(stream, prefix_blocks(args), 0, prefix_grad<decltype(element)>, args);
  });
}

void launch_attention(cudaStream_t stream, Storage storage, const AttentionArgs& args) {
  if (on_tensor_cores(storage, args)) return launch_flash(stream, storage, args);
  if (args.shape.head <= 64)
    launch_forward<Tiles<64, 64>>(stream, storage, args);
  else if (args.shape.head <= 128)
    launch_forward<Tiles<128, 64>>(stream, storage, args);
  else
    launch_forward<Tiles<kWidestHead, 32>>(stream, storage, args);
}

void launch_attention_grad(cudaStream_t stream, Storage storage, const AttentionGradArgs& args) {
  if (on_tensor_cores(storage, args)) return launch_flash_grad(stream, storage, args);
  launch(stream, blocks_for(args.shape.heads() * args.shape.queries, kThreads / 32), 0, output_products, args,
         storage);
  if (args.shape.head <= 64)
    launch_backward<Tiles<64, 48>>(stream, storage, args);
  else if (args.shape.head <= 128)
    launch_backward<Tiles<128, 32>>(stream, storage, args);
  else
    launch_backward<Tiles<kWidestHead, 16>>(stream, storage, args);
}

void launch_cache_append(cudaStream_t stream, Storage storage, const CacheAppend& args) {
  const AttentionShape& s = args.shape;
  with_storage(storage, [&](auto from) {
    with_storage(args.cache_storage, [&](auto to) {
      launch(stream, s.queries * s.batch * s.groups, 0, cache_append<decltype(to), decltype(from)>, args);
    });
  });
}

}  // namespace megalith::cuda
