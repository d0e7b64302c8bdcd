#include "libcore/ops/cuda/flash_tools.h"

namespace megalith::cuda {
namespace flash {
namespace {

template <class T>
constexpr size_t kGradBytes = (2 * T::kRowElements + 4 * T::kLineElements) * sizeof(Element<T>) +
                              4 * T::kLines * sizeof(float);

/// delta = dout . out for each row of each head, which equals the sum over keys of p dP. Sixteen threads per
/// row, which read 16 bytes each.
template <class E>
__global__ void __launch_bounds__(kBlock) flash_delta(AttentionGradArgs a) {
  const AttentionShape& s = a.shape;
  const int64_t number = int64_t{blockIdx.x} * (kBlock / 16) + threadIdx.x / 16;
  const bool there = number < s.heads() * s.queries;
  const int64_t head = number / s.queries, query = number % s.queries,
                column = int64_t{8} * (threadIdx.x % 16);
  float sum = 0;
  if (there && column < s.head) {
    const int64_t place = (query * s.heads() + head) * s.head + column;
    const Vector<8, E> out = vector_at<8>(static_cast<const E*>(a.out) + place),
                       dout = vector_at<8>(static_cast<const E*>(a.dout) + place);
    MEGALITH_UNROLL for (int i = 0; i < 8; ++i) sum += widen(out.at[i]) * widen(dout.at[i]);
  }
  for (int apart = 8; apart > 0; apart /= 2) sum += __shfl_xor_sync(kWholeWarp, sum, apart);
  if (there && column == 0) a.delta[number] = sum;
}

/// The tiles of queries that are the lines of the kernel for keys: for each head of a group in turn, those of
/// which some query sees some key of the block.
template <class T>
struct QueryTiles {
  int heads, first, end;
  __device__ QueryTiles(const AttentionShape& s, int64_t sequence, int key)
      : heads(static_cast<int>(s.r)),
        first(static_cast<int>(s.rows.row_from(key))),
        end(static_cast<int>(s.queries_before(key + T::kRows, sequence))) {
    if (first >= end) heads = 0;
  }
  struct Tile {
    int head, query;  // head: within the group
  };
  __device__ Tile after(const Tile& tile) const {
    const int query = tile.query + T::kLines;
    return query < end ? Tile{tile.head, query} : Tile{tile.head + 1, first};
  }
};

/// Begins to copy a tile of queries, the gradients of their outputs after it, and their lse and delta.
template <class T>
__device__ void copy_queries(Element<T>* to, float* numbers, const AttentionGradArgs& a,
                             const HeadPlace& place, int query) {
  const AttentionShape& s = a.shape;
  copy_lines<T, T::kLines>(to, lines_of<T>(a.q, place.q(s), s.q.position, s.queries, s.head), query);
  copy_lines<T, T::kLines>(to + T::kLineElements,
                           lines_of<T>(a.dout, place.out(s), s.heads() * s.head, s.queries, s.head), query);
  static_assert(2 * T::kLines <= kBlock);
  const int i = static_cast<int>(threadIdx.x), row = query + i % T::kLines;
  if (i < 2 * T::kLines)
    copy_async<4>(numbers + i, (i < T::kLines ? a.lse : a.delta) + place.row(s) + (row < s.queries ? row : 0),
                  row < s.queries);
  commit_copies();
}

/// Each block computes dK and dV for one tile of keys of one group. It adds up the contributions of the
/// group's query heads in order.
template <class T>
__global__ void __launch_bounds__(kBlock, T::kBlocks) flash_key_grad(AttentionGradArgs a) {
  MEGALITH_DYNAMIC_SHARED(shared);
  Element<T>*const keys = reinterpret_cast<Element<T>*>(shared), *const values = keys + T::kRowElements,
                   *const lines = values + T::kRowElements;
  float* const numbers = reinterpret_cast<float*>(lines + 4 * T::kLineElements);  // [2][lse, delta][kLines]
  const int my_rows = warp() * T::kWarpRows * T::kStride;
  const float scale = a.scale * kLog2E;  // for powers of two
  const AttentionShape& s = a.shape;
  const int64_t group = blockIdx.x % (s.batch * s.groups);
  const int key = static_cast<int>(blockIdx.x / (s.batch * s.groups)) * T::kRows;
  const int mine = key + warp() * T::kWarpRows;  // the warp's first key
  const HeadPlace first(s, group * s.r);
  const QueryTiles<T> tiles(s, first.sequence, key);
  HeadSums<T> dk, dv;
  clear<T>(dk);
  clear<T>(dv);
  copy_lines<T, T::kRows>(keys, lines_of<T>(a.k, first.kv(s), s.kv.position, s.keys, s.head), key);
  copy_lines<T, T::kRows>(values, lines_of<T>(a.v, first.kv(s), s.kv.position, s.keys, s.head), key);
  commit_copies();
  typename QueryTiles<T>::Tile tile{0, tiles.first};
  if (tile.head < tiles.heads) copy_queries<T>(lines, numbers, a, first, tile.query);
  for (int stage = 0; tile.head < tiles.heads; tile = tiles.after(tile), stage ^= 1) {
    const int query = tile.query, last = query + T::kLines - 1;
    const HeadPlace place = first.plus(tile.head);
    wait_for_copies<0>();
    __syncthreads();  // the tile is there, and all warps are done with the one before it
    if (const auto next = tiles.after(tile); next.head < tiles.heads)
      copy_queries<T>(lines + (stage ^ 1) * 2 * T::kLineElements, numbers + (stage ^ 1) * 2 * T::kLines, a,
                      first.plus(next.head), next.query);
    const KeyRange low = keys_of(s, place, query),
                   high = keys_of(s, place, last < s.queries ? last : static_cast<int>(s.queries) - 1);
    if (mine > high.last || mine + T::kWarpRows <= low.first)
      continue;  // no query sees any of the warp's keys
    const Element<T>*const line = lines + stage * 2 * T::kLineElements, *const dout = line + T::kLineElements;
    const float* const lse = numbers + stage * 2 * T::kLines + thread_column();
    KeptSums<T> kept = {};
    if (a.mask.key.scale != 0) draw<T, true>(kept, a, place, query, mine);
    LineSums<T> p, ds;
    multiply_lines<T>(p, keys + my_rows, line);
    if (last >= s.queries || mine < high.first || mine + T::kWarpRows - 1 > low.last)
      hide_queries<T>(p, s, place, query + thread_column(), mine + thread_row());
    MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) {
      const Vector<2, float> row = vector_at<2>(lse + ptrdiff_t{8} * n);
      const float base[2] = {row.at[0] * kLog2E, row.at[1] * kLog2E};
      MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) MEGALITH_UNROLL for (int i = 0; i < 4; ++i)
          p[t][n][i] = power_of_two(p[t][n][i] * scale - base[i % 2]);
    }
    multiply_lines<T>(ds, values + my_rows, dout);
    if (a.mask.key.scale != 0) drop<T>(ds, kept, a.mask.key.scale);
    MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) {
      const Vector<2, float> delta = vector_at<2>(lse + T::kLines + 8 * n);
      MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) MEGALITH_UNROLL for (int i = 0; i < 4; ++i)
          ds[t][n][i] = p[t][n][i] * (ds[t][n][i] - delta.at[i % 2]);
    }
    if (a.mask.key.scale != 0) drop<T>(p, kept, 1);  // scaled when dV is stored
    Weights<T> weights;
    narrow_sums<T>(weights, p);
    add_lines<T>(dv, weights, dout);
    narrow_sums<T>(weights, ds);
    add_lines<T>(dk, weights, line);
  }
  wait_for_copies<0>();
  __syncthreads();
  RowNumbers<T> factors;
  fill<T>(factors, a.scale);
  store_rows<T>(dk, factors, keys + my_rows, lines_of<T>(a.dk, first.kv(s), s.kv.position, s.keys, s.head),
                mine);
  fill<T>(factors, kept_scale(a.mask));
  store_rows<T>(dv, factors, values + my_rows, lines_of<T>(a.dv, first.kv(s), s.kv.position, s.keys, s.head),
                mine);
}

/// Each block computes dQ for one tile of queries of one head.
template <class T>
__global__ void __launch_bounds__(kBlock, T::kBlocks) flash_query_grad(AttentionGradArgs a) {
  MEGALITH_DYNAMIC_SHARED(shared);
  Element<T>*const queries = reinterpret_cast<Element<T>*>(shared), *const douts = queries + T::kRowElements,
                   *const lines = douts + T::kRowElements;
  const int my_rows = warp() * T::kWarpRows * T::kStride;
  const float scale = a.scale * kLog2E;  // for powers of two
  const AttentionShape& s = a.shape;
  const HeadPlace place(s, blockIdx.x % s.heads());
  const QueryRows<T> rows(s, place);
  HeadSums<T> dq;
  clear<T>(dq);
  RowNumbers<T> base, delta;
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int half = 0; half < 2; ++half) {
    const int query = rows.mine + 16 * t + 8 * half + thread_row();
    base[t][half] = query <= rows.last ? a.lse[place.row(s) + query] * kLog2E : 0.0f;
    delta[t][half] = query <= rows.last ? a.delta[place.row(s) + query] : 0.0f;
  }
  copy_lines<T, T::kRows>(queries, lines_of<T>(a.q, place.q(s), s.q.position, s.queries, s.head), rows.first);
  copy_lines<T, T::kRows>(douts, lines_of<T>(a.dout, place.out(s), s.heads() * s.head, s.queries, s.head),
                          rows.first);
  each_key_tile<T>(lines, a, place, rows, [&](int key, const Element<T>* line) {
    KeptSums<T> kept = {};
    if (a.mask.key.scale != 0) draw<T, false>(kept, a, place, rows.mine, key);
    LineSums<T> p, ds;
    multiply_lines<T>(p, queries + my_rows, line);
    if (!rows.all_see(key)) hide_keys<T>(p, s, place, rows.mine + thread_row(), key + thread_column());
    multiply_lines<T>(ds, douts + my_rows, line + T::kLineElements);
    if (a.mask.key.scale != 0) drop<T>(ds, kept, a.mask.key.scale);
    MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
        MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 4; ++i)
            ds[t][n][i] = power_of_two(p[t][n][i] * scale - base[t][i / 2]) * (ds[t][n][i] - delta[t][i / 2]);
    Weights<T> weights;
    narrow_sums<T>(weights, ds);
    add_lines<T>(dq, weights, line);
  });
  RowNumbers<T> factors;
  fill<T>(factors, a.scale);
  store_rows<T>(dq, factors, queries + my_rows,
                lines_of<T>(a.dq, place.q(s), s.q.position, s.queries, s.head), rows.mine);
}

// ---- launching

template <class T>
void launch_key_grad(cudaStream_t stream, const AttentionGradArgs& a) {
  static_assert(fits<T>(kGradBytes<T>));
  launch<kBlock>(stream, blocks_for(a.shape.keys, T::kRows) * a.shape.batch * a.shape.groups, kGradBytes<T>,
                 flash_key_grad<T>, a);
}
template <class T>
void launch_query_grad(cudaStream_t stream, const AttentionGradArgs& a) {
  static_assert(fits<T>(kGradBytes<T>));
  launch<kBlock>(stream, blocks_for(a.shape.queries, T::kRows) * a.shape.heads(), kGradBytes<T>,
                 flash_query_grad<T>, a);
}

template <class E>
void launch_grads(cudaStream_t stream, const AttentionGradArgs& a) {
  launch<kBlock>(stream, blocks_for(a.shape.heads() * a.shape.queries, kBlock / 16), 0, flash_delta<E>, a);
  if (a.shape.head <= 64) {
    launch_key_grad<Tiles<E, 64, 1, 64, 2>>(stream, a);
    launch_query_grad<Tiles<E, 64, 2, 32, 2>>(stream, a);
  } else if (a.shape.head <= 80) {
    launch_key_grad<Tiles<E, 80, 1, 32, 2>>(stream, a);
    launch_query_grad<Tiles<E, 80, 1, 32, 3>>(stream, a);
  } else if (a.shape.head <= 96) {
    launch_key_grad<Tiles<E, 96, 1, 32, 2>>(stream, a);
    launch_query_grad<Tiles<E, 96, 1, 32, 3>>(stream, a);
  } else {
    launch_key_grad<Tiles<E, 128, 1, 32, 2>>(stream, a);
    launch_query_grad<Tiles<E, 128, 1, 32, 2>>(stream, a);
  }
}

}  // namespace
}  // namespace flash

bool on_tensor_cores(Storage storage, const AttentionGradArgs& a) {
  return flash::takes(storage, a.shape) && aligned16(a.q, a.k, a.v, a.dq, a.dk, a.dv, a.out, a.dout);
}

void launch_flash_grad(cudaStream_t stream, Storage storage, const AttentionGradArgs& a) {
  if (storage == Storage::kF16) return flash::launch_grads<Half>(stream, a);
  flash::launch_grads<Bf16>(stream, a);
}

}  // namespace megalith::cuda
