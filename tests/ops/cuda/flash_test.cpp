// What attention on the tensor cores asks of a multiprocessor, counted on the emulated device, against what
// its design says (docs/cuda.md).
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "tests/ops/cuda/counted_cuda.h"

namespace megalith::test {
namespace {

/// Rows of a warp and lines of a tile. A block has four warps.
struct TileSizes {
  int64_t rows, lines;
};
/// The table of docs/cuda.md.
struct Design {
  int64_t head;
  TileSizes forward, keys, queries;
};
constexpr Design kDesigns[] = {{64, {32, 64}, {16, 64}, {32, 32}}, {128, {32, 32}, {16, 32}, {16, 32}}};

constexpr int64_t kPositions = 128, kHeads = 2;

/// Pairs of a query and a key that a head's warps of queries multiply: each takes all tiles of keys of which
/// one of its queries sees a part.
int64_t pairs_by_query(const TileSizes& tile) {
  int64_t pairs = 0;
  for (int64_t end = tile.rows; end <= kPositions; end += tile.rows)
    pairs += (end + tile.lines - 1) / tile.lines * tile.lines * tile.rows;
  return pairs;
}
/// Those that a head's warps of keys multiply: each takes all tiles of queries, from the block's first key
/// on, of which one query sees a part of its keys.
int64_t pairs_by_key(const TileSizes& tile) {
  int64_t pairs = 0;
  for (int64_t key = 0; key < kPositions; key += tile.rows)
    for (int64_t query = key / (4 * tile.rows) * 4 * tile.rows; query < kPositions; query += tile.lines)
      if (query + tile.lines > key) pairs += tile.rows * tile.lines;
  return pairs;
}

/// Attention and its gradient in bf16 of two heads with 128 positions: one tile of queries, so that keys and
/// values are read once.
class EmulatedCudaAttention : public CountedCuda<Design> {
 protected:
  void SetUp() override {
    CountedCuda::SetUp();
    if (IsSkipped()) return;
    qkv_ = bed_->put(DType::kBf16, packed_, random_values(packed_.elements(), 1));
    out_ = bed_->put(DType::kBf16, heads_, random_values(heads_.elements(), 2));
    lse_ = bed_->put(DType::kF32, {1, kHeads, kPositions}, Values(kHeads * kPositions, 9.0));
  }
  /// The mma.sync of so many products of this many pairs in each head: each multiplies 16 x 8 x 16.
  double products(int64_t pairs) const {
    return static_cast<double>(kHeads * pairs * GetParam().head) / (16 * 8 * 16);
  }
  static double sectors(size_t bytes) { return static_cast<double>(bytes) / 32; }

  const Shape packed_{kPositions, 1, kHeads, 3, GetParam().head},
      heads_{kPositions, 1, kHeads, GetParam().head};
  View qkv_, out_, lse_;
};
INSTANTIATE_TEST_SUITE_P(Heads, EmulatedCudaAttention, testing::ValuesIn(kDesigns),
                         [](const auto& design) { return "Of" + std::to_string(design.param.head); });

TEST_P(EmulatedCudaAttention, ReadsEachTileOnceAndMultipliesWhatIsSeen) {
  const Attention op{.out = out_, .qkv = qkv_, .scale = 0.1f, .lse = lse_};
  const CountedWork work = work_of(op);
  const int64_t pairs = pairs_by_query(GetParam().forward);
  EXPECT_GE(work.sectors, sectors(static_cast<size_t>(op.cost().bytes)));
  EXPECT_LE(work.sectors, 1.05 * sectors(static_cast<size_t>(op.cost().bytes)));
  EXPECT_EQ(work.products, 2 * products(pairs));
  EXPECT_GE(work.specials, static_cast<double>(kHeads * pairs));  // a power of two for each score
  EXPECT_LE(work.specials, 1.15 * static_cast<double>(kHeads * pairs));
  EXPECT_EQ(work.conflicts, 0);
}

// Three kernels: the products of out and dout; for each 64 keys, the queries from there on; for each block of
// queries, the keys up to there. The kernel for keys multiplies four times, the one for queries three times.
TEST_P(EmulatedCudaAttention, HasAGradientOfSevenProductsThatReadsEachTileOnce) {
  const View dqkv = bed_->empty(DType::kBf16, packed_),
             dout = bed_->put(DType::kBf16, heads_, random_values(heads_.elements(), 3));
  const CountedWork work = work_of(
      AttentionGrad{.dqkv = dqkv, .dout = dout, .out = out_, .qkv = qkv_, .lse = lse_, .scale = 0.1f});
  const int64_t by_key = pairs_by_key(GetParam().keys), by_query = pairs_by_query(GetParam().queries);
  EXPECT_EQ(work.products, 4 * products(by_key) + 3 * products(by_query));
  EXPECT_GE(work.specials, static_cast<double>(kHeads * (by_key + by_query)));
  EXPECT_LE(work.specials, 1.02 * static_cast<double>(kHeads * (by_key + by_query)));
  EXPECT_EQ(work.conflicts, 0);
  // Tensors of heads, and of one number for each row of a head.
  const bool whole = 4 * GetParam().queries.rows == kPositions;  // one block of queries, or two
  const double keys_read = whole ? 2 : 3, by_keys = 2 + 2 * 1.5 + 2, by_queries = 2 + keys_read + 1;
  const double least =
      (2 + by_keys + by_queries) * sectors(out_.bytes()) + (1 + 2 * 1.5 + 2) * sectors(lse_.bytes());
  EXPECT_GE(work.sectors, least);
  EXPECT_LE(work.sectors, 1.05 * least);
}

}  // namespace
}  // namespace megalith::test
