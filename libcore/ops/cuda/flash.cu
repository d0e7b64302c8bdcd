#include "libcore/ops/cuda/attention_tools.h"
#include "libcore/ops/cuda/mma.h"

// Flash attention in bf16 or fp16 on the tensor cores, with sums in fp32.
//
// A block has four warps. Each warp owns 16 or 32 rows: queries, or keys in the kernel for their gradient.
// The block loops over tiles of lines (keys, or queries in that kernel), each copied to shared memory one
// tile ahead of its products. Scores stay in registers: narrowed, the sums of one product are an operand of
// the next one (mma.h). For that the kernel for keys computes the transposed scores, with keys as rows.
//
// The gradient has two kernels, each the only one that writes its sums, so no sum depends on timing. Together
// they multiply seven times where one kernel would do with five, but that one would have to add dQ up over
// the tiles of keys: by atomics, whose order varies, or in memory, with 8 bytes per element, row and tile. At
// 64 keys a tile the two products are 32 operations for each of these bytes. An H200 does them in half the
// time in which it moves the bytes (4.8 TB/s, some 300 TFLOP/s by mma.sync).
//
// A row of a tile takes kWidth + 8 elements, an odd number of 16-byte units. So the 8 rows of a matrix that
// ldmatrix reads at a time lie in 8 different units modulo 128 bytes: no bank conflicts. The same holds for
// the results, which pass through shared memory so that rows are stored 16 bytes at a time.
//
// Registers bound the sizes. A warp holds 32 rows where its sums and scores then fit, since a line's operand
// is loaded once for all rows of a warp. A thread has up to 255 registers where two blocks run per
// multiprocessor, and 168 where three do (tests/ops/cuda/machine_code_test.cpp). A block takes 44 to 69 KiB
// of shared memory: those two or three blocks fit on compute capability 8.0. On 8.6 and 8.9 (100 KiB) one
// fits, or two with heads of 80 columns.

namespace megalith::cuda {
namespace {

constexpr int kBlock = 128, kWarps = kBlock / 32;

/// Elements of type E. kWidth columns of a head, a multiple of 16; a narrower head is padded with zeros.
/// kRowTiles tiles of 16 rows per warp; kLines lines per tile. kBlocks blocks run at a time on a
/// multiprocessor.
template <class E, int kWidth_, int kRowTiles_, int kLines_, int kBlocks_>
struct Tiles {
  using Element = E;
  static constexpr int kWidth = kWidth_, kRowTiles = kRowTiles_, kLines = kLines_, kBlocks = kBlocks_;
  static constexpr int kWarpRows = 16 * kRowTiles, kRows = kWarps * kWarpRows;
  static constexpr int kStride = kWidth + 8;
  static constexpr int kRowElements = kRows * kStride, kLineElements = kLines * kStride;
};

template <class T>
using Element = typename T::Element;

/// A warp's sums for its rows and the lines of a tile; its sums for its rows and the columns of a head; and
/// the former, narrowed.
template <class T>
using LineSums = float[T::kRowTiles][T::kLines / 8][4];
template <class T>
using HeadSums = float[T::kRowTiles][T::kWidth / 8][4];
template <class T>
using Weights = uint32_t[T::kRowTiles][T::kLines / 16][4];

/// A number for each of the rows of which a thread holds sums.
template <class T>
using RowNumbers = float[T::kRowTiles][2];

__device__ inline int lane() {
  return static_cast<int>(threadIdx.x) % 32;
}
__device__ inline int warp() {
  return static_cast<int>(threadIdx.x) / 32;
}
/// Where the first of a thread's sums is in a tile of 16 x 8 (mma.h).
__device__ inline int thread_row() {
  return lane() / 4;
}
__device__ inline int thread_column() {
  return lane() % 4 * 2;
}

/// Lines of one head in global memory: line i begins at data + i * stride.
template <class T>
struct Lines {
  const Element<T>* data;
  int64_t stride;
  int count, head;
};

template <class T>
__device__ Lines<T> lines_of(const void* data, int64_t offset, int64_t stride, int64_t count, int64_t head) {
  return {static_cast<const Element<T>*>(data) + offset, stride, static_cast<int>(count),
          static_cast<int>(head)};
}

/// Begins to copy kCount lines from `first` on to a tile; zeros where there is no line or no column. Eight or
/// sixteen threads copy a line.
template <class T, int kCount>
__device__ void copy_lines(Element<T>* tile, const Lines<T>& from, int first) {
  constexpr int kThreadsOfLine = T::kWidth <= 64 ? 8 : 16, kStep = kBlock / kThreadsOfLine;
  static_assert(kCount % kStep == 0 && T::kWidth <= 8 * kThreadsOfLine);
  const int thread = static_cast<int>(threadIdx.x), column = thread % kThreadsOfLine * 8;
  int line = thread / kThreadsOfLine;
  if (column >= T::kWidth) return;
  const Element<T>* place = from.data + (first + line) * from.stride + column;  // read only if it is there
  Element<T>* to = tile + line * T::kStride + column;
  MEGALITH_UNROLL for (int i = 0; i < kCount / kStep; ++i) {
    copy_async<16>(to, place, first + line < from.count && column < from.head);
    line += kStep;
    place += kStep * from.stride;
    to += kStep * T::kStride;
  }
}

/// sums[row][line] = row . line; `rows` are the warp's.
template <class T>
__device__ void multiply_lines(LineSums<T>& sums, const Element<T>* rows, const Element<T>* lines) {
  const Element<T>* const row = rows + lane() % 16 * T::kStride + lane() / 16 * 8;
  const Element<T>* const line = lines + (lane() / 16 * 8 + lane() % 8) * T::kStride + lane() / 8 % 2 * 8;
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 4; ++i)
          sums[t][n][i] = 0;
  MEGALITH_UNROLL for (int column = 0; column < T::kWidth; column += 16) {
    uint32_t a[T::kRowTiles][4];
    MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
        load_matrices<4, false>(a[t], row + t * 16 * T::kStride + column);
    MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; n += 2) {
      uint32_t b[4];
      load_matrices<4, false>(b, line + n * 8 * T::kStride + column);
      MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) {
        multiply_add<Element<T>>(sums[t][n], a[t], b[0], b[1]);
        multiply_add<Element<T>>(sums[t][n + 1], a[t], b[2], b[3]);
      }
    }
  }
}

/// sums[row] += the sum over the lines of weights[row][line] line.
template <class T>
__device__ void add_lines(HeadSums<T>& sums, const Weights<T>& weights, const Element<T>* lines) {
  const Element<T>* const line = lines + lane() % 16 * T::kStride + lane() / 16 * 8;
  MEGALITH_UNROLL for (int step = 0; step < T::kLines / 16; ++step)
      MEGALITH_UNROLL for (int n = 0; n < T::kWidth / 8; n += 2) {
    uint32_t b[4];
    load_matrices<4, true>(b, line + step * 16 * T::kStride + n * 8);
    MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) {
      multiply_add<Element<T>>(sums[t][n], weights[t][step], b[0], b[1]);
      multiply_add<Element<T>>(sums[t][n + 1], weights[t][step], b[2], b[3]);
    }
  }
}

template <class T>
__device__ void clear(HeadSums<T>& sums) {
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int n = 0; n < T::kWidth / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 4; ++i)
          sums[t][n][i] = 0;
}

template <class T>
__device__ void fill(RowNumbers<T>& numbers, float value) {
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) MEGALITH_UNROLL for (int half = 0; half < 2; ++half)
      numbers[t][half] = value;
}

template <class T>
__device__ void narrow_sums(Weights<T>& weights, const LineSums<T>& sums) {
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n)
          MEGALITH_UNROLL for (int half = 0; half < 2; ++half) weights[t][n / 2][n % 2 * 2 + half] =
              narrow_pair<Element<T>>(sums[t][n][2 * half], sums[t][n][2 * half + 1]);
}

/// Stores the warp's rows times their factors; row 0 is row `first` of `to`. They pass through `tile`, the
/// warp's rows of a tile, which no other warp reads.
template <class T>
__device__ void store_rows(const HeadSums<T>& sums, const RowNumbers<T>& factors, Element<T>* tile,
                           const Lines<T>& to, int first) {
  __syncwarp();  // unseen by tests: the tile was read by loads of matrices, which a warp does together
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) MEGALITH_UNROLL for (int half = 0; half < 2; ++half)
      MEGALITH_UNROLL for (int n = 0; n < T::kWidth / 8; ++n) {
    const int row = 16 * t + 8 * half + thread_row(), column = 8 * n + thread_column();
    *reinterpret_cast<uint32_t*>(tile + row * T::kStride + column) = narrow_pair<Element<T>>(
        sums[t][n][2 * half] * factors[t][half], sums[t][n][2 * half + 1] * factors[t][half]);
  }
  __syncwarp();
  constexpr int kChunks = T::kWidth / 8;
  for (int i = lane(); i < T::kWarpRows * kChunks; i += 32) {
    const int row = i / kChunks, column = i % kChunks * 8;
    if (first + row < to.count && column < to.head)
      put_vector(const_cast<Element<T>*>(to.data) + (first + row) * to.stride + column,
                 vector_at<8>(tile + row * T::kStride + column));
  }
}

// ---- which scores count

/// Hides scores (minus infinity) of a product with queries as rows: those of the keys that a query does not
/// see. `query` and `key`: of the thread's first score.
template <class T>
__device__ void hide_keys(LineSums<T>& scores, const AttentionShape& s, const HeadPlace& place, int query,
                          int key) {
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int half = 0; half < 2; ++half) {
    const KeyRange seen = keys_of(s, place, computed_here(query) + 16 * t + 8 * half);
    MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n)
        MEGALITH_UNROLL for (int i = 0; i < 2; ++i) if (!seen.has(key + 8 * n + i))
            scores[t][n][2 * half + i] = -INFINITY;
  }
}
/// The same with keys as rows.
template <class T>
__device__ void hide_queries(LineSums<T>& scores, const AttentionShape& s, const HeadPlace& place, int query,
                             int key) {
  MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 2; ++i) {
    const KeyRange seen = keys_of(s, place, computed_here(query) + 8 * n + i);
    MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
        MEGALITH_UNROLL for (int half = 0; half < 2; ++half) if (!seen.has(key + 16 * t + 8 * half))
            scores[t][n][2 * half + i] = -INFINITY;
  }
}

/// The queries that are the rows of a block and of the running warp, and the keys that they see. The tiles
/// that see the most keys come first, so that the last block to end is a short one.
template <class T>
struct QueryRows {
  int first, last, mine;     // the first and last query of the block, and the first of the warp
  KeyRange keys, some, all;  // those that some query of the block, some of the warp and all of the warp see

  __device__ QueryRows(const AttentionShape& s, const HeadPlace& place) {
    const int count = static_cast<int>(s.queries), tiles = (count + T::kRows - 1) / T::kRows;
    first = (tiles - 1 - static_cast<int>(blockIdx.x / s.heads())) * T::kRows;
    last = (first + T::kRows < count ? first + T::kRows : count) - 1;
    mine = first + warp() * T::kWarpRows;
    const int end = mine + T::kWarpRows - 1, my_last = end < last ? end : last;
    keys = {keys_of(s, place, first).first, keys_of(s, place, last).last};
    some = mine > last ? KeyRange{0, -1}
                       : KeyRange{keys_of(s, place, mine).first, keys_of(s, place, my_last).last};
    all = end > last ? KeyRange{0, -1} : KeyRange{keys_of(s, place, end).first, keys_of(s, place, mine).last};
  }
  /// Whether no query of the warp sees the tile of keys that begins with `key`, and whether all see all of
  /// it.
  __device__ bool none_sees(int key) const { return key > some.last || key + T::kLines <= some.first; }
  __device__ bool all_see(int key) const { return key >= all.first && key + T::kLines - 1 <= all.last; }
};

// ---- dropout

/// For each tile of 16 rows, whether the mask keeps the thread's sums: bit 4 n + i is that of sum i of the
/// n-th tile of 8 lines.
template <class T>
using KeptSums = uint32_t[T::kRowTiles];

/// Exchanges words between two threads whose lanes differ by `apart`: the upper one's `low` for the lower
/// one's `high`.
__device__ inline void trade(uint32_t& low, uint32_t& high, int apart) {
  const bool upper = (lane() & apart) != 0;
  const uint32_t got = __shfl_xor_sync(kWholeWarp, upper ? low : high, apart);
  if (upper)
    low = got;
  else
    high = got;
}

__device__ inline uint32_t kept_bits(const HeadMask& mask, const Words& words) {
  uint32_t bits = 0;
  MEGALITH_UNROLL for (int i = 0; i < 4; ++i) bits |= (words.word[i] <= mask.key.last_kept ? 1u : 0u) << i;
  return bits;
}
__device__ inline uint32_t kept_bit(const HeadMask& mask, int query, uint64_t column) {
  return mask_bits(mask.key, mask.sample, mask.rows.at(query), column) <= mask.key.last_kept ? 1 : 0;
}

/// The mask for the four sums that a thread holds of a 16 x 8 tile with queries as rows, from `query` and
/// `key` on. If the tile begins with the four columns of one Philox call, each thread makes one call: an even
/// one for four keys of its first query, its neighbour for the same keys of the second query.
__device__ inline uint32_t kept_by_query(const HeadMask& mask, int query, int key) {
  const uint64_t column = mask.first_column + static_cast<uint64_t>(key);
  uint32_t bits = 0;
  if (column % 4 == 0) {
    const int row = query + thread_row() + lane() % 2 * 8;
    Words words = mask_words(mask.key, mask.sample, mask.rows.at(row),
                             column / 4 + static_cast<unsigned>(lane() % 4 / 2));
    trade(words.word[0], words.word[2], 1);
    trade(words.word[1], words.word[3], 1);
    bits = kept_bits(mask, words);
  } else {
    MEGALITH_UNROLL_1 for (int i = 0; i < 4; ++i) bits |=
        kept_bit(mask, query + thread_row() + i / 2 * 8,
                 column + static_cast<unsigned>(thread_column() + i % 2))
        << i;
  }
  return bits;
}
/// The same with keys as rows: four threads share the calls for four adjacent keys of two queries and those
/// for the four keys 8 further.
__device__ inline uint32_t kept_by_key(const HeadMask& mask, int query, int key) {
  const uint64_t column = mask.first_column + static_cast<uint64_t>(key);
  uint32_t bits = 0;
  if (column % 4 == 0) {
    const int part = thread_row() % 4;
    Words words = mask_words(mask.key, mask.sample, mask.rows.at(query + thread_column() + part % 2),
                             column / 4 + static_cast<unsigned>(part / 2 * 2 + thread_row() / 4));
    trade(words.word[0], words.word[1], 4);
    trade(words.word[2], words.word[3], 4);
    trade(words.word[0], words.word[2], 8);
    trade(words.word[1], words.word[3], 8);
    bits = kept_bits(mask, words);
  } else {
    MEGALITH_UNROLL_1 for (int i = 0; i < 4; ++i) bits |=
        kept_bit(mask, query + thread_column() + i % 2,
                 column + static_cast<unsigned>(thread_row() + i / 2 * 8))
        << i;
  }
  return bits;
}

/// Draws the mask of a tile before its scores exist, in a loop that is not unrolled, so that it needs no more
/// registers than they do.
template <class T, bool kKeysAreRows>
__device__ void draw(KeptSums<T>& kept, const auto& a, const HeadPlace& place, int query, int key) {
  static_assert(T::kLines <= 64);
  const HeadMask mask(a.mask, place, a.shape.keys);
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) kept[t] = 0;
  MEGALITH_UNROLL_1 for (int n = 0; n < T::kLines / 8; ++n)
      MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t) kept[t] |=
      (kKeysAreRows ? kept_by_key(mask, computed_here(query) + 8 * n, key + 16 * t)
                    : kept_by_query(mask, computed_here(query) + 16 * t, key + 8 * n))
      << 4 * n;
}

/// Multiplies what the mask keeps, and sets the rest to 0.
template <class T>
__device__ void drop(LineSums<T>& sums, const KeptSums<T>& kept, float factor) {
  MEGALITH_UNROLL for (int t = 0; t < T::kRowTiles; ++t)
      MEGALITH_UNROLL for (int n = 0; n < T::kLines / 8; ++n) MEGALITH_UNROLL for (int i = 0; i < 4; ++i)
          sums[t][n][i] = (kept[t] >> (4 * n + i) & 1) != 0 ? sums[t][n][i] * factor : 0.0f;
}

/// The factor of what is kept; 1 without dropout.
__device__ inline float kept_scale(const AttentionMask& mask) {
  return mask.key.scale == 0 ? 1.0f : mask.key.scale;
}

// ---- forward

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

/// Begins to copy a tile of keys and the values after it.
template <class T>
__device__ void copy_keys(Element<T>* to, const auto& a, const HeadPlace& place, int key) {
  const AttentionShape& s = a.shape;
  copy_lines<T, T::kLines>(to, lines_of<T>(a.k, place.kv(s), s.kv.position, s.keys, s.head), key);
  copy_lines<T, T::kLines>(to + T::kLineElements,
                           lines_of<T>(a.v, place.kv(s), s.kv.position, s.keys, s.head), key);
  commit_copies();
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
  int key = rows.keys.first / T::kLines * T::kLines, stage = 0;
  copy_keys<T>(lines, a, place, key);
  for (; key <= rows.keys.last; key += T::kLines, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();  // the tile is there, and all warps are done with the one before it
    if (key + T::kLines <= rows.keys.last)
      copy_keys<T>(lines + (stage ^ 1) * 2 * T::kLineElements, a, place, key + T::kLines);
    if (rows.none_sees(key)) continue;
    const Element<T>* const line = lines + stage * 2 * T::kLineElements;
    KeptSums<T> kept;
    if (a.mask.key.scale != 0) draw<T, false>(kept, a, place, rows.mine, key);
    LineSums<T> scores;
    multiply_lines<T>(scores, my_queries, line);
    if (!rows.all_see(key)) hide_keys<T>(scores, s, place, rows.mine + thread_row(), key + thread_column());
    absorb<T>(scores, a.scale * kLog2E, softmax, out);
    if (a.mask.key.scale != 0) drop<T>(scores, kept, 1);  // scaled when the output is stored
    Weights<T> p;
    narrow_sums<T>(p, scores);
    add_lines<T>(out, p, line + T::kLineElements);
  }
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

// ---- backward

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
    KeptSums<T> kept;
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
  int key = rows.keys.first / T::kLines * T::kLines, stage = 0;
  copy_keys<T>(lines, a, place, key);
  for (; key <= rows.keys.last; key += T::kLines, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();  // the tile is there, and all warps are done with the one before it
    if (key + T::kLines <= rows.keys.last)
      copy_keys<T>(lines + (stage ^ 1) * 2 * T::kLineElements, a, place, key + T::kLines);
    if (rows.none_sees(key)) continue;
    const Element<T>* const line = lines + stage * 2 * T::kLineElements;
    KeptSums<T> kept;
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
  }
  RowNumbers<T> factors;
  fill<T>(factors, a.scale);
  store_rows<T>(dq, factors, queries + my_rows,
                lines_of<T>(a.dq, place.q(s), s.q.position, s.queries, s.head), rows.mine);
}

// ---- launching

/// Whether the shared memory of a multiprocessor of compute capability 8.0 is enough for kBlocks blocks.
template <class T>
constexpr bool fits(size_t bytes) {
  constexpr size_t kReserved = 1 << 10;  // by the system, for each block
  return T::kBlocks * (bytes + kReserved) <= 164 << 10;
}

template <class T>
void launch_forward(cudaStream_t stream, const AttentionArgs& a) {
  static_assert(fits<T>(kForwardBytes<T>));
  launch<kBlock>(stream, blocks_for(a.shape.queries, T::kRows) * a.shape.heads(), kForwardBytes<T>,
                 flash_forward<T>, a);
}
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
void launch_forwards(cudaStream_t stream, const AttentionArgs& a) {
  if (a.shape.head <= 64) return launch_forward<Tiles<E, 64, 2, 64, 2>>(stream, a);
  if (a.shape.head <= 80) return launch_forward<Tiles<E, 80, 2, 32, 2>>(stream, a);
  if (a.shape.head <= 96) return launch_forward<Tiles<E, 96, 2, 32, 2>>(stream, a);
  launch_forward<Tiles<E, 128, 2, 32, 2>>(stream, a);
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

bool takes(Storage storage, const AttentionShape& s) {
  return storage != Storage::kF32 && s.head <= 128 && s.head % 8 == 0;
}

}  // namespace

bool on_tensor_cores(Storage storage, const AttentionArgs& a) {
  return takes(storage, a.shape) && a.kv_storage == storage && aligned16(a.q, a.k, a.v, a.out);
}
bool on_tensor_cores(Storage storage, const AttentionGradArgs& a) {
  return takes(storage, a.shape) && aligned16(a.q, a.k, a.v, a.dq, a.dk, a.dv, a.out, a.dout);
}

void launch_flash(cudaStream_t stream, Storage storage, const AttentionArgs& a) {
  if (storage == Storage::kF16) return launch_forwards<Half>(stream, a);
  launch_forwards<Bf16>(stream, a);
}

void launch_flash_grad(cudaStream_t stream, Storage storage, const AttentionGradArgs& a) {
  if (storage == Storage::kF16) return launch_grads<Half>(stream, a);
  launch_grads<Bf16>(stream, a);
}

}  // namespace megalith::cuda
