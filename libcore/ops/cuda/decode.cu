#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/attention_tools.h"
#include "libcore/ops/cuda/mma.h"

// Attention of a few queries over many keys, as in generation. The keys are divided into parts: each block
// computes one part, and a second kernel merges the parts in order, so that results repeat bit for bit.
// Reading the cache takes most of the time, so a block multiplies on the plain cores, for all rows (queries
// of the heads of one group) that share a key. A warp takes four keys at a time; its threads share the
// columns.

namespace megalith::cuda {
namespace {

constexpr int kWarps = kThreads / 32, kBatch = 4;

/// A row of results over some keys has these numbers, then the head's columns of the output: the maximum of
/// its softmax, in powers of two, and the sum relative to that.
constexpr int kNumbers = 2;

struct DecodeArgs {
  AttentionArgs attention;
  Storage storage;
  DecodeCut cut;
  float* parts;  // [batch, groups, rows, parts, kNumbers + head]
};

/// kRows rows of one group, and this thread's columns of them: lane + 32 i.
template <int kRows, int kColumns>
struct DecodeRows {
  int first[kRows], last[kRows];  // the keys that each sees; none if there is no such row
  float q[kRows][kColumns], out[kRows][kColumns], max[kRows], sum[kRows];

  /// Rows from `row` on of the group whose first head is `place`.
  __device__ DecodeRows(const DecodeArgs& d, const HeadPlace& place, int64_t row) {
    const AttentionArgs& a = d.attention;
    const AttentionShape& s = a.shape;
    MEGALITH_UNROLL for (int i = 0; i < kRows; ++i) {
      const int64_t query = (row + i) / s.r, slot = (row + i) % s.r;
      const bool there = query < s.queries;
      first[i] = there ? static_cast<int>(s.first_key(query, place.sequence)) : 0;
      last[i] = there ? static_cast<int>(s.last_key(query)) : -1;
      max[i] = -INFINITY;
      sum[i] = 0;
      MEGALITH_UNROLL for (int j = 0; j < kColumns; ++j) {
        const int64_t column = threadIdx.x % 32 + 32 * j;
        q[i][j] = there && column < s.head
                      ? a.scale * kLog2E *
                            load(d.storage, a.q, place.q(s) + slot * s.head + query * s.q.position + column)
                      : 0.0f;
        out[i][j] = 0;
      }
    }
  }
  /// Adds the keys from `key` on, which have these scores and values.
  __device__ void absorb(float (&scores)[kRows][kBatch], int key, const float (&values)[kBatch][kColumns]) {
    MEGALITH_UNROLL for (int i = 0; i < kRows; ++i) {
      float top = max[i];
      MEGALITH_UNROLL for (int b = 0; b < kBatch; ++b) {
        if (key + b < first[i] || key + b > last[i]) scores[i][b] = -INFINITY;
        top = fmaxf(top, scores[i][b]);
      }
      // Before its first visible key, a row's maximum is minus infinity, from which nothing is subtracted.
      const float base = top == -INFINITY ? 0.0f : top, shrink = power_of_two(max[i] - base);
      max[i] = top;
      sum[i] *= shrink;
      MEGALITH_UNROLL for (int j = 0; j < kColumns; ++j) out[i][j] *= shrink;
      MEGALITH_UNROLL for (int b = 0; b < kBatch; ++b) {
        const float p = power_of_two(scores[i][b] - base);
        sum[i] += p;
        MEGALITH_UNROLL for (int j = 0; j < kColumns; ++j) out[i][j] += p * values[b][j];
      }
    }
  }
  /// Writes row i to memory (see kNumbers).
  __device__ void store(int i, float* to, int64_t head) const {
    if (threadIdx.x % 32 == 0) {
      to[0] = max[i];
      to[1] = sum[i];
    }
    MEGALITH_UNROLL for (int j = 0; j < kColumns; ++j) {
      const int64_t column = threadIdx.x % 32 + 32 * j;
      if (column < head) to[kNumbers + column] = out[i][j];
    }
  }
};

/// Loads a batch of lines: this thread's columns of the first `left`; zeros for the others.
template <class T, int kColumns>
__device__ void load_lines(float (&lines)[kBatch][kColumns], const T* data, int64_t stride, int64_t head,
                           int left) {
  MEGALITH_UNROLL for (int b = 0; b < kBatch; ++b) MEGALITH_UNROLL for (int j = 0; j < kColumns; ++j) {
    const int64_t column = threadIdx.x % 32 + 32 * j;
    lines[b][j] = b < left && column < head ? widen(data[b * stride + column]) : 0.0f;
  }
}

/// Number `column` of the row that merges `count` rows, `stride` numbers apart; `max` is their maximum.
__device__ inline float merged(const float* rows, int64_t count, int64_t stride, int64_t column, float max) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i)
    if (rows[i * stride] != -INFINITY)
      sum += rows[i * stride + column] * power_of_two(rows[i * stride] - max);
  return sum;
}
__device__ inline float merged_max(const float* rows, int64_t count, int64_t stride) {
  float max = -INFINITY;
  for (int64_t i = 0; i < count; ++i) max = fmaxf(max, rows[i * stride]);
  return max;
}

/// Each block computes one part of kRows rows of one group: its warps take turns with the keys, and their
/// results are merged in order.
template <class T, int kRows, int kColumns>
__global__ void __launch_bounds__(kThreads, kColumns < 8 ? 2 : 1) decode_parts(DecodeArgs d) {
  MEGALITH_DYNAMIC_SHARED(shared);
  const AttentionShape& s = d.attention.shape;
  const int64_t all_rows = s.queries * s.r, tiles = (all_rows + kRows - 1) / kRows;
  const int64_t part = blockIdx.x % d.cut.parts, tile = blockIdx.x / d.cut.parts % tiles;
  const int64_t group = blockIdx.x / (d.cut.parts * tiles);
  const HeadPlace place(s, group * s.r);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int begin = static_cast<int>(d.cut.first + part * d.cut.size);
  const int end = static_cast<int>(begin + d.cut.size < s.keys ? begin + d.cut.size : s.keys);
  DecodeRows<kRows, kColumns> rows(d, place, tile * kRows);
  for (int key = begin + warp * kBatch; key < end; key += kWarps * kBatch) {
    const int64_t at = place.kv(s) + key * s.kv.position;
    float lines[kBatch][kColumns], scores[kRows][kBatch];
    load_lines<T, kColumns>(lines, static_cast<const T*>(d.attention.k) + at, s.kv.position, s.head,
                            end - key);
    MEGALITH_UNROLL for (int i = 0; i < kRows; ++i) MEGALITH_UNROLL for (int b = 0; b < kBatch; ++b) {
      float score = 0;
      MEGALITH_UNROLL for (int j = 0; j < kColumns; ++j) score += rows.q[i][j] * lines[b][j];
      score = warp_sum(score);
      scores[i][b] = score;
    }
    load_lines<T, kColumns>(lines, static_cast<const T*>(d.attention.v) + at, s.kv.position, s.head,
                            end - key);
    rows.absorb(scores, key, lines);
  }
  const int64_t width = kNumbers + s.head;  // shared memory: [kWarps, kRows, width]
  MEGALITH_UNROLL for (int i = 0; i < kRows; ++i) rows.store(i, shared + (warp * kRows + i) * width, s.head);
  __syncthreads();
  for (int64_t i = threadIdx.x; i < kRows * width; i += kThreads) {
    const int64_t row = i / width, column = i % width;
    if (tile * kRows + row >= all_rows) continue;
    const float* const from = shared + row * width;
    const float max = merged_max(from, kWarps, kRows * width);
    d.parts[((group * all_rows + tile * kRows + row) * d.cut.parts + part) * width + column] =
        column == 0 ? max : merged(from, kWarps, kRows * width, column, max);
  }
}

/// One warp per row.
__global__ void __launch_bounds__(kThreads) decode_merge(DecodeArgs d) {
  const AttentionShape& s = d.attention.shape;
  const int64_t all_rows = s.queries * s.r, number = int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (number >= s.batch * s.groups * all_rows) return;
  const int64_t group = number / all_rows, query = number % all_rows / s.r, slot = number % all_rows % s.r;
  const int64_t width = kNumbers + s.head;
  const float* const parts = d.parts + number * d.cut.parts * width;
  const float max = merged_max(parts, d.cut.parts, width);
  const float scale = 1 / merged(parts, d.cut.parts, width, 1, max);
  const int64_t to = (query * s.heads() + group * s.r + slot) * s.head;
  for (int64_t column = threadIdx.x % 32; column < s.head; column += 32) {
    store(d.storage, d.attention.out, to + column,
          scale * merged(parts, d.cut.parts, width, kNumbers + column, max));
  }
}

template <class T, int kRows, int kColumns>
void launch_parts(cudaStream_t stream, const DecodeArgs& d) {
  const AttentionShape& s = d.attention.shape;
  launch(stream, s.batch * s.groups * blocks_for(s.queries * s.r, kRows) * d.cut.parts,
         size_t{kWarps} * kRows * static_cast<size_t>(kNumbers + s.head) * sizeof(float),
         decode_parts<T, kRows, kColumns>, d);
}
template <class T, int kRows>
void launch_parts(cudaStream_t stream, const DecodeArgs& d) {
  if (d.attention.shape.head <= 64)
    launch_parts<T, kRows, 2>(stream, d);
  else if (d.attention.shape.head <= 128)
    launch_parts<T, kRows, 4>(stream, d);
  else
    launch_parts<T, kRows, 8>(stream, d);
}

}  // namespace

void launch_decode(cudaStream_t stream, Storage storage, const AttentionArgs& args, const DecodeCut& cut,
                   void* workspace) {
  const DecodeArgs d{args, storage, cut, static_cast<float*>(workspace)};
  const AttentionShape& s = args.shape;
  with_storage(args.kv_storage, [&](auto element) {
    using T = decltype(element);
    if (s.queries * s.r == 1)
      launch_parts<T, 1>(stream, d);
    else
      launch_parts<T, DecodeCut::kRows>(stream, d);
  });
  launch(stream, blocks_for(s.batch * s.groups * s.queries * s.r, kWarps), 0, decode_merge, d);
}

}  // namespace megalith::cuda
