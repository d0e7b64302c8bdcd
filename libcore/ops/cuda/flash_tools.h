#pragma once

#include "libcore/ops/cuda/attention_tools.h"
#include "libcore/ops/cuda/mma.h"

/// Flash attention in bf16 or fp16 on the tensor cores, with sums in fp32.
///
/// A block has four warps. Each warp owns 16 or 32 rows: queries, or keys in the kernel for their gradient.
/// The block loops over tiles of lines (keys, or queries in that kernel), each copied to shared memory one
/// tile ahead of its products. Scores stay in registers: narrowed, the sums of one product are an operand of
/// the next one (mma.h). For that the kernel for keys computes the transposed scores, with keys as rows.
///
/// The gradient has two kernels, each the only one that writes its sums, so no sum depends on timing.
/// Together they multiply seven times where one kernel would do with five, but that one would have to add dQ
/// up over the tiles of keys: by atomics, whose order varies, or in memory, with 8 bytes per element, row and
/// tile. At 64 keys a tile the two products are 32 operations for each of these bytes. An H200 does them in
/// half the time in which it moves the bytes (4.8 TB/s, some 300 TFLOP/s by mma.sync).
///
/// A row of a tile takes kWidth + 8 elements, an odd number of 16-byte units. So the 8 rows of a matrix that
/// ldmatrix reads at a time lie in 8 different units modulo 128 bytes: no bank conflicts. The same holds for
/// the results, which pass through shared memory so that rows are stored 16 bytes at a time.
///
/// Registers bound the sizes. A warp holds 32 rows where its sums and scores then fit, since a line's operand
/// is loaded once for all rows of a warp. A thread has up to 255 registers where two blocks run per
/// multiprocessor, and 168 where three do (tests/ops/cuda/machine_code_test.cpp). A block takes 44 to 69 KiB
/// of shared memory: those two or three blocks fit on compute capability 8.0. On 8.6 and 8.9 (100 KiB) one
/// fits, or two with heads of 80 columns.
namespace megalith::cuda::flash {

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

/// Begins to copy a tile of keys and the values after it.
template <class T>
__device__ void copy_keys(Element<T>* to, const auto& a, const HeadPlace& place, int key) {
  const AttentionShape& s = a.shape;
  copy_lines<T, T::kLines>(to, lines_of<T>(a.k, place.kv(s), s.kv.position, s.keys, s.head), key);
  copy_lines<T, T::kLines>(to + T::kLineElements,
                           lines_of<T>(a.v, place.kv(s), s.kv.position, s.keys, s.head), key);
  commit_copies();
}

/// Calls `use(key, line)` for each tile of keys that some query of the warp sees, in order: the tile begins
/// with `key`, and lies at `line` in shared memory with the values after it. Meanwhile the next tile is
/// copied to the other half of `lines`, which has room for two. The first wait is also for what was copied
/// before.
template <class T>
__device__ __forceinline__ void each_key_tile(Element<T>* lines, const auto& a, const HeadPlace& place,
                                              const QueryRows<T>& rows, const auto& use) {
  int key = rows.keys.first / T::kLines * T::kLines, stage = 0;
  copy_keys<T>(lines, a, place, key);
  for (; key <= rows.keys.last; key += T::kLines, stage ^= 1) {
    wait_for_copies<0>();
    __syncthreads();  // the tile is there, and all warps are done with the one before it
    if (key + T::kLines <= rows.keys.last)
      copy_keys<T>(lines + (stage ^ 1) * 2 * T::kLineElements, a, place, key + T::kLines);
    if (rows.none_sees(key)) continue;
    use(key, static_cast<const Element<T>*>(lines + stage * 2 * T::kLineElements));
  }
}

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

// ---- launching

/// Whether the shared memory of a multiprocessor of compute capability 8.0 is enough for kBlocks blocks.
template <class T>
constexpr bool fits(size_t bytes) {
  constexpr size_t kReserved = 1 << 10;  // by the system, for each block
  return T::kBlocks * (bytes + kReserved) <= 164 << 10;
}

/// Whether these kernels take such heads.
inline bool takes(Storage storage, const AttentionShape& s) {
  return storage != Storage::kF32 && s.head <= 128 && s.head % 8 == 0;
}

}  // namespace megalith::cuda::flash
