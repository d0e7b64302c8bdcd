#include "libcore/ops/cuda/flash_tools.h"

namespace megalith::cuda {
namespace flash {
namespace {

template <class T>
constexpr size_t kForwardBytes = (T::kRowElements + 4 * T::kLineElements) * sizeof(Element<T>);

/// The running maximum of the warp's rows, and this thread's share of the sum of exponentials.
template <class T>
struct SoftmaxRows {
  RowNumbers<T> max, sum;
};

/// Turns scores into probabilities relative to the new maxima, and rescales the output so far. `scale` is for
/// powers of two.
template <class T>
__device__ void absorb(LineSums<T>& scores, float scale, SoftmaxRows<T>& rows, HeadSums<T>& out) {
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int half = 0; half < 2; ++half) {
    float max = rows.max[t][half], total = 0;
    MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) max =
        fmaxf(max, fmaxf(scores[t][n][2 * half], scores[t][n][2 * half + 1]));
    max = fmaxf(max, __shfl_xor_sync(kWholeWarp, max, 1));
    max = fmaxf(max, __shfl_xor_sync(kWholeWarp, max, 2));
    // A row that has seen no key so far keeps a maximum of minus infinity, from which nothing is subtracted.
    const float base = max == -INFINITY ? 0.0f : max * scale;
    const float shrink = power_of_two(rows.max[t][half] * scale - base);
    MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 2; ++i) {
      const float p = power_of_two(scores[t][n][2 * half + i] * scale - base);
      scores[t][n][2 * half + i] = p;
      total += p;
    }
    rows.max[t][half] = max;
    rows.sum[t][half] = rows.sum[t][half] * shrink + total;
    MEGALITH_UNROLL for (int n = 0; n < T::kWidth / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 2; ++i)
        out[t][n][2 * half + i] *= shrink;
  }
}

/// Each block computes one tile of queries of one head.
template <class T>
__global__ void __launch_bounds__(kBlock, T::kBlocks) flash_forward(AttentionArgs a) {
  MEGALITH_DYNAMIC_SHARED(shared);
  Element<T>*const queries = reinterpret_cast<Element<T>*>(shared), *const lines = queries + T::kRowElements;
  Element<T>* const my_queries = queries + warp() * T::kWarpRows * T::kStride;
  const AttentionShape& s = a.shape;
  const HeadPlace place(s, blockIdx.x % s.heads());
  const QueryRows<T> rows(s, place);
  SoftmaxRows<T> softmax;
  HeadSums<T> out;
  clear<T>(out);
  fill<T>(softmax.max, -INFINITY);
  fill<T>(softmax.sum, 0);
  copy_lines<T, T::kRows>(queries, lines_of<T>(a.q, place.q(s), s.q.position, s.queries, s.head), rows.first);
  each_key_tile<T>(lines, a, place, rows, [&](int key, const Element<T>* line) {
    KeptSums<T> kept = {};
    if (a.mask.key.scale != 0) draw<T, false>(kept, a, place, rows.mine, key);
    LineSums<T> scores;
    multiply_lines<T>(scores, my_queries, line);
    if (!rows.all_see(key)) hide_keys<T>(scores, s, place, rows.mine + thread_row(), key + thread_column());
    absorb<T>(scores, a.scale * kLog2E, softmax, out);
    if (a.mask.key.scale != 0) drop<T>(scores, kept, 1);  // scaled when the output is stored
    Weights<T> p;
    narrow_sums<T>(p, scores);
    add_lines<T>(out, p, line + T::kLineElements);
  });
  RowNumbers<T> factors;
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int half = 0; half < 2; ++half) {
    float sum = softmax.sum[t][half];
    sum += __shfl_xor_sync(kWholeWarp, sum, 1);
    sum += __shfl_xor_sync(kWholeWarp, sum, 2);
    const int query = rows.mine + 16 * t + 8 * half + thread_row();
    if (a.lse != nullptr && query <= rows.last && lane() % 4 == 0)
      a.lse[place.row(s) + query] = softmax.max[t][half] * a.scale + logf(sum);
    factors[t][half] = kept_scale(a.mask) / sum;
  }
  store_rows<T>(out, factors, my_queries,
                lines_of<T>(a.out, place.out(s), s.heads() * s.head, s.queries, s.head), rows.mine);
}

// ---- launching

template <class T>
void launch_forward(cudaStream_t stream, const AttentionArgs& a) {
  static_assert(fits<T>(kForwardBytes<T>));
  launch<kBlock>(stream, blocks_for(a.shape.queries, T::kRows) * a.shape.heads(), kForwardBytes<T>,
                 flash_forward<T>, a);
}

template <class E>
void launch_forwards(cudaStream_t stream, const AttentionArgs& a) {
  if (a.shape.head <= 64) return launch_forward<Tiles<E, 64, 2, 64, 2>>(stream, a);
  if (a.shape.head <= 80) return launch_forward<Tiles<E, 80, 2, 32, 2>>(stream, a);
  if (a.shape.head <= 96) return launch_forward<Tiles<E, 96, 2, 32, 2>>(stream, a);
  launch_forward<Tiles<E, 128, 2, 32, 2>>(stream, a);
}

}  // namespace
}  // namespace flash

bool on_tensor_cores(Storage storage, const AttentionArgs& a) {
  return flash::takes(storage, a.shape) && a.kv_storage == storage && aligned16(a.q, a.k, a.v, a.out);
}

void launch_flash(cudaStream_t stream, Storage storage, const AttentionArgs& a) {
  if (storage == Storage::kF16) return flash::launch_forwards<Half>(stream, a);
  flash::launch_forwards<Bf16>(stream, a);
}

}  // namespace megalith::cuda
