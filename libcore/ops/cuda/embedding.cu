#include "libcore/ops/cuda/row_tools.h"

// The embedding and its gradient. For the gradient of the table, the rows of dy are sorted by their ids, and
// the sorted rows are cut into tiles of kSortedTile rows: however often an id occurs, no block adds up more
// rows. An id's rows within a tile are added in order, and its tiles in order, so that results are
// reproducible bit for bit.

namespace megalith::cuda {
namespace {

template <class T, int kWide>
__global__ void embedding(EmbeddingArgs a) {
  const int64_t row = blockIdx.x, id = a.ids[row] - int64_t{a.first_id};
  const bool mine = id >= 0 && id < a.vocabulary;
  const T* const entry = static_cast<const T*>(a.table) + (mine ? id * a.columns : 0);
  const int64_t place = a.spans.at(row / a.batch) - (a.starts == nullptr ? 0 : a.starts[row]);
  const T* const position =
      a.positions == nullptr ? nullptr : static_cast<const T*>(a.positions) + place * a.columns;
  T* const y = static_cast<T*>(a.y) + row * a.columns;
  for (int64_t i = int64_t{kWide} * threadIdx.x; i < a.columns; i += int64_t{kWide} * blockDim.x) {
    Floats<kWide> value = {};
    if (mine) value = widened(vector_at<kWide>(entry + i));
    if (position != nullptr) add_to(value, widened(vector_at<kWide>(position + i)));
    put_vector(y + i, narrowed<T>(value));
  }
}

/// An fp32 y from tables that are narrower.
__global__ void widened_embedding(EmbeddingArgs a) {
  const int64_t row = blockIdx.x, id = a.ids[row] - int64_t{a.first_id};
  const bool mine = id >= 0 && id < a.vocabulary;
  const int64_t place = a.spans.at(row / a.batch) - (a.starts == nullptr ? 0 : a.starts[row]);
  for (int64_t i = threadIdx.x; i < a.columns; i += blockDim.x) {
    float value = mine ? load(a.table_storage, a.table, id * a.columns + i) : 0.0f;
    if (a.positions != nullptr) value += load(a.position_storage, a.positions, place * a.columns + i);
    static_cast<float*>(a.y)[row * a.columns + i] = value;
  }
}

// ---- sorting: by the ids, kDigitBits at a time from the lowest on; rows with equal bits stay in order

/// An id in the high half, its row in the low one.
using Pair = uint64_t;
static_assert(sizeof(Pair) == EmbeddingScratch::kPair);

__device__ inline uint32_t id_of(Pair pair) {
  return static_cast<uint32_t>(pair >> 32);
}
__device__ inline uint32_t row_of(Pair pair) {
  return static_cast<uint32_t>(pair);
}

/// One pass. It takes the ids themselves if `from` is null.
struct SortPass {
  const int32_t* ids;
  int64_t first_id, vocabulary;
  const Pair* from;
  Pair* to;
  uint32_t* counts;  // [digit][tile]
  int64_t rows, tiles;
  int shift;
  __device__ Pair at(int64_t i) const {
    if (from != nullptr) return from[i];
    const int64_t entry = ids[i] - first_id;
    const bool mine = entry >= 0 && entry < vocabulary;
    return static_cast<Pair>(mine ? entry : vocabulary) << 32 | static_cast<uint32_t>(i);
  }
  __device__ uint32_t digit(Pair pair) const {
    return id_of(pair) >> shift & static_cast<uint32_t>(kDigits - 1);
  }
};

constexpr int kPairs = kSortTile / kThreads;  // of one thread

/// The number of each digit in each tile.
__global__ void count_digits(SortPass a) {
  __shared__ uint32_t counts[kDigits][kThreads];
  for (auto& of_digit : counts) of_digit[threadIdx.x] = 0;
  for (int k = 0; k < kPairs; ++k) {
    const int64_t i = int64_t{blockIdx.x} * kSortTile + (k * kThreads + threadIdx.x);
    if (i < a.rows) ++counts[a.digit(a.at(i))][threadIdx.x];
  }
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  for (unsigned digit = threadIdx.x / 32; digit < kDigits; digit += kThreads / 32) {
    uint32_t sum = 0;
    for (unsigned i = lane; i < kThreads; i += 32) sum += counts[digit][i];
    sum = warp_sum(sum);
    if (lane == 0) a.counts[digit * a.tiles + blockIdx.x] = sum;
  }
}

/// Where the pairs of this tile with each digit go: after those of lower digits, and of the same digit in
/// earlier tiles. All threads of the block call it; they may read `starts` after the next barrier.
__device__ inline void find_starts(const SortPass& a, uint32_t* starts) {
  constexpr unsigned kShare = kThreads / kDigits;  // threads of a digit
  __shared__ uint32_t all[kThreads], before[kThreads];
  const unsigned digit = threadIdx.x / kShare;
  uint32_t of_all = 0, of_earlier = 0;
  for (int64_t tile = threadIdx.x % kShare; tile < a.tiles; tile += kShare) {
    const uint32_t count = a.counts[digit * a.tiles + tile];
    of_all += count;
    if (tile < blockIdx.x) of_earlier += count;
  }
  all[threadIdx.x] = of_all;
  before[threadIdx.x] = of_earlier;
  __syncthreads();
  if (threadIdx.x >= kDigits) return;
  uint32_t start = 0;
  for (unsigned i = 0; i < threadIdx.x * kShare; ++i) start += all[i];
  for (unsigned i = 0; i < kShare; ++i) start += before[threadIdx.x * kShare + i];
  starts[threadIdx.x] = start;
}

/// Replaces numbers[0 .. kDigits * kThreads) by the sums of those before them.
__device__ inline void sum_before(uint32_t* numbers) {
  __shared__ uint32_t sums[kThreads];
  uint32_t* const own = numbers + threadIdx.x * kDigits;
  uint32_t sum = 0;
  for (int i = 0; i < kDigits; ++i) sum += own[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  uint32_t before = 0;
  for (unsigned i = 0; i < threadIdx.x; ++i) before += sums[i];
  for (int i = 0; i < kDigits; ++i) {
    const uint32_t number = own[i];
    own[i] = before;
    before += number;
  }
  __syncthreads();
}

/// Sorts the tile in shared memory, then writes it, so that neighbours go to neighbours.
__global__ void scatter_digits(SortPass a) {
  __shared__ Pair pairs[kSortTile];
  __shared__ uint32_t places[kDigits][kThreads], starts[kDigits], first[kDigits];
  const int64_t begin = blockIdx.x * kSortTile;
  const int count = static_cast<int>(a.rows - begin < kSortTile ? a.rows - begin : kSortTile);
  const int own = static_cast<int>(threadIdx.x) * kPairs;
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) pairs[i] = a.at(begin + i);
  for (auto& of_digit : places) of_digit[threadIdx.x] = 0;
  find_starts(a, starts);
  __syncthreads();
  Pair held[kPairs] = {};
  MEGALITH_UNROLL for (int k = 0; k < kPairs; ++k) {
    if (own + k >= count) continue;
    held[k] = pairs[own + k];
    ++places[a.digit(held[k])][threadIdx.x];
  }
  __syncthreads();
  sum_before(&places[0][0]);
  if (threadIdx.x < kDigits) first[threadIdx.x] = places[threadIdx.x][0];
  __syncthreads();
  MEGALITH_UNROLL for (int k = 0; k < kPairs; ++k) if (own + k < count)
      pairs[places[a.digit(held[k])][threadIdx.x]++] = held[k];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += kThreads) {
    const uint32_t digit = a.digit(pairs[i]);
    a.to[starts[digit] + static_cast<uint32_t>(i) - first[digit]] = pairs[i];
  }
}

/// Returns the sorted pairs, in one of the two lists of `scratch`.
const Pair* sort_rows(cudaStream_t stream, const EmbeddingGradArgs& a, const EmbeddingScratch& sizes,
                      char* scratch) {
  Pair* const lists[2] = {reinterpret_cast<Pair*>(scratch), reinterpret_cast<Pair*>(scratch + sizes.pairs)};
  SortPass pass{.ids = a.ids,
                .first_id = a.first_id,
                .vocabulary = a.vocabulary,
                .from = nullptr,
                .to = lists[0],
                .counts = reinterpret_cast<uint32_t*>(scratch + 2 * sizes.pairs),
                .rows = a.rows,
                .tiles = blocks_for(a.rows, kSortTile),
                .shift = 0};
  for (int number = 0; a.vocabulary >> pass.shift != 0; ++number, pass.shift += kDigitBits) {
    pass.to = lists[number % 2];
    launch(stream, pass.tiles, 0, count_digits, pass);
    launch(stream, pass.tiles, 0, scatter_digits, pass);
    pass.from = pass.to;
  }
  return pass.from;
}

// ---- sums of sorted rows

struct SortedRows {
  const Pair* pairs;
  float* edges;  // [tile][2][columns]: sums of the id that begins before it, then of that which continues
  int64_t tiles;
};

/// The pairs of a tile with their neighbours: pairs[0] is before the tile, pairs[kSortedTile + 1] after it.
/// Beyond the ends are ids that no row has.
__device__ inline void read_tile(Pair* pairs, const SortedRows& sorted, int64_t rows) {
  for (int i = static_cast<int>(threadIdx.x); i < kSortedTile + 2; i += static_cast<int>(blockDim.x)) {
    const int64_t at = blockIdx.x * kSortedTile + i - 1;
    pairs[i] = at >= 0 && at < rows ? sorted.pairs[at] : ~Pair{0};
  }
  __syncthreads();
}

/// Adds up the rows of each id of a tile. The rows of other ranks' ids, `vocabulary`, come last.
template <class T, int kWide>
__global__ void sum_tiles(EmbeddingGradArgs a, SortedRows sorted) {
  __shared__ Pair pairs[kSortedTile + 2];
  read_tile(pairs, sorted, a.rows);
  float* const edges = sorted.edges + int64_t{blockIdx.x} * 2 * a.columns;
  for (int64_t column = int64_t{kWide} * threadIdx.x; column < a.columns;
       column += int64_t{kWide} * blockDim.x)
    for (int i = 1; i <= kSortedTile && id_of(pairs[i]) < a.vocabulary;) {
      const uint32_t id = id_of(pairs[i]);
      const bool begins = id_of(pairs[i - 1]) != id;
      Floats<kWide> sums = {};
      for (; i <= kSortedTile && id_of(pairs[i]) == id; ++i)
        add_to(sums, widened(vector_at<kWide>(static_cast<const T*>(a.dy) + row_of(pairs[i]) * a.columns +
                                              column)));
      float* to = edges + (begins ? a.columns : 0) + column;
      if (begins && id_of(pairs[i]) != id) {  // all its rows
        to = a.dtable + id * a.columns + column;
        add_to(sums, floats_at<kWide>(to));
      }
      put_floats(to, sums);
    }
}

/// For each tile with an id that begins there and continues, adds up that id's sums of all its tiles.
template <int kWide>
__global__ void join_tiles(EmbeddingGradArgs a, SortedRows sorted) {
  __shared__ Pair pairs[kSortedTile + 2];
  read_tile(pairs, sorted, a.rows);
  const uint32_t id = id_of(pairs[kSortedTile]);
  const bool begins = id_of(pairs[0]) != id || id_of(pairs[1]) != id;
  if (!begins || id >= a.vocabulary || id_of(pairs[kSortedTile + 1]) != id) return;
  for (int64_t column = int64_t{kWide} * threadIdx.x; column < a.columns;
       column += int64_t{kWide} * blockDim.x) {
    const float* edge = sorted.edges + (int64_t{blockIdx.x} * 2 + 1) * a.columns + column;
    Floats<kWide> sums = floats_at<kWide>(edge);
    int64_t next = (int64_t{blockIdx.x} + 1) * kSortedTile;  // the first row of the next tile
    for (edge += a.columns; next < a.rows && id_of(sorted.pairs[next]) == id; next += kSortedTile) {
      add_to(sums, floats_at<kWide>(edge));
      edge += 2 * a.columns;
    }
    float* const to = a.dtable + id * a.columns + column;
    add_to(sums, floats_at<kWide>(to));
    put_floats(to, sums);
  }
}

// ---- positions

/// One block per row of positions, where each row has its own.
template <class T, int kWide>
__global__ void position_grad(EmbeddingGradArgs a) {
  const int64_t row = blockIdx.x;
  const T* const dy = static_cast<const T*>(a.dy) + row * a.batch * a.columns;
  float* const to = a.dpositions + a.spans.at(row) * a.columns;
  for (int64_t i = int64_t{kWide} * threadIdx.x; i < a.columns; i += int64_t{kWide} * blockDim.x) {
    Floats<kWide> sums = floats_at<kWide>(to + i);
    for (int64_t sequence = 0; sequence < a.batch; ++sequence)
      add_to(sums, widened(vector_at<kWide>(dy + sequence * a.columns + i)));
    put_floats(to + i, sums);
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

template <class T, int kWide>
void launch_position_grad(cudaStream_t stream, const EmbeddingGradArgs& args) {
  const int64_t rows = args.rows / args.batch;
  if (args.starts == nullptr)
    launch(stream, {rows, threads_for(args.columns / kWide)}, position_grad<T, kWide>, args);
  else
    launch(stream, args.spans.at(rows - 1) + 1, 0, document_position_grad<T>, args);
}

}  // namespace

void launch_embedding(cudaStream_t stream, Storage storage, const EmbeddingArgs& args) {
  if (args.table_storage != storage || (args.positions != nullptr && args.position_storage != storage))
    return launch(stream, {args.rows, threads_for(args.columns)}, widened_embedding, args);
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    with_width<T>(wide_rows<T>(args.columns, args.y, args.table, args.positions), [&](auto width) {
      constexpr int kWide = decltype(width)::kElements;
      launch(stream, {args.rows, threads_for(args.columns / kWide)}, embedding<T, kWide>, args);
    });
  });
}

void launch_embedding_grad(cudaStream_t stream, Storage storage, const EmbeddingGradArgs& args,
                           void* workspace) {
  if (args.rows == 0) return;
  const EmbeddingScratch sizes(args.rows, args.columns);
  char* const scratch = static_cast<char*>(workspace);
  const SortedRows sorted{sort_rows(stream, args, sizes, scratch),
                          reinterpret_cast<float*>(scratch + 2 * sizes.pairs + sizes.counts),
                          blocks_for(args.rows, kSortedTile)};
  with_storage(storage, [&](auto element) {
    using T = decltype(element);
    // Four numbers at a time also in bf16: the sums in fp32, which are most of what is moved, take 16 bytes.
    with_width<float>(wide_rows<float>(args.columns, args.dy, args.dtable, args.dpositions), [&](auto width) {
      constexpr int kWide = decltype(width)::kElements;
      const Grid grid{sorted.tiles, threads_for(args.columns / kWide)};
      launch(stream, grid, sum_tiles<T, kWide>, args, sorted);
      launch(stream, grid, join_tiles<kWide>, args, sorted);
      if (args.dpositions != nullptr) launch_position_grad<T, kWide>(stream, args);
    });
  });
}

}  // namespace megalith::cuda
