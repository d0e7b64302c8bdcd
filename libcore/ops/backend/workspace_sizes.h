#pragma once

#include <stddef.h>
#include <stdint.h>

/// How the CUDA kernels divide their sums, and the scratch memory that follows. The kernels use it, and so
/// does the estimate of a run's memory (cuda_workspaces.h), which also counts a stream's page-locked memory.
/// Needs no CUDA header.
namespace megalith::cuda {

/// The scratch memory of products: what cuBLASLt prefers on Hopper, and behind it the sums of
/// Gemm::bias_grad, of at most kMaxSums rows, before they are added.
constexpr size_t kProductWorkspace = size_t{32} << 20;
constexpr int64_t kMaxSums = int64_t{1} << 16;
/// The least scratch memory of a stream that multiplies. It holds what any product needs, so that it does not
/// grow from one to the next.
constexpr size_t kMinWorkspace = kProductWorkspace + size_t{kMaxSums} * sizeof(float);

/// The page-locked host memory through which a stream's copies to the device pass: the samples of a step of
/// 500,000 tokens fit.
constexpr size_t kStagingBytes = size_t{8} << 20;

/// The blocks of rows, of `size` rows each, that are summed down their columns at the same time.
struct RowCut {
  static constexpr int64_t kMaxBlocks = 64, kMinRows = 64;
  int64_t size, blocks;
  explicit constexpr RowCut(int64_t rows, int64_t min_rows = kMinRows, int64_t max_blocks = kMaxBlocks)
      : size(divided(rows, max_blocks)), blocks(0) {
    if (size < min_rows) size = min_rows;
    blocks = divided(rows, size);
  }
  static constexpr int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }
};

/// The sums of two tensors [rows, columns] down their columns, in fp32.
constexpr size_t column_sums_bytes(int64_t rows, int64_t columns) {
  return static_cast<size_t>(2 * RowCut(rows).blocks * columns) * sizeof(float);
}

/// The rows of a norm's gradient, cut so that the partial sums of its weights (`sums`: w alone, or w and b)
/// are a small share of what is read: with 32 rows for each sum, 1/32 of two bf16 tensors.
constexpr RowCut norm_grad_cut(int64_t rows, int sums) {
  constexpr int64_t kRows = 32, kBlocks = 1024;
  return RowCut(rows, kRows * sums, kBlocks);
}
/// Bytes of those sums, or of column_sums_bytes() if that is more: it serves rows that cannot be read in
/// 16-byte vectors.
constexpr size_t norm_grad_bytes(int64_t rows, int64_t columns, int sums) {
  const size_t held = static_cast<size_t>(norm_grad_cut(rows, sums).blocks * sums * columns) * sizeof(float);
  const size_t plain = column_sums_bytes(rows, columns);
  return held > plain ? held : plain;
}

/// The sums of the weights' gradients of HeadsNormGrad, for blocks of rows [rows, columns].
constexpr size_t heads_norm_grad_bytes(int64_t rows, int64_t columns) {
  return static_cast<size_t>(RowCut(rows).blocks * columns) * sizeof(float);
}

/// The rows of an embedding's gradient, in the order of their ids, are summed in tiles of this many rows.
constexpr int64_t kSortedTile = 64;
/// The ids are sorted by kDigitBits at a time, in tiles of kSortTile ids.
constexpr int kDigitBits = 4;
constexpr int64_t kSortTile = 2048, kDigits = 1 << kDigitBits;

/// Scratch memory of the embedding's gradient: two lists of (id, row), the number of each digit in each tile,
/// and for each tile of sorted rows the sums of the id that begins before it and of the one that continues
/// after it.
struct EmbeddingScratch {
  static constexpr size_t kPair = 8;
  size_t pairs, counts, sums;  // bytes of a list, of the numbers, of the sums
  constexpr EmbeddingScratch(int64_t rows, int64_t columns)
      : pairs(aligned(static_cast<size_t>(rows) * kPair)),
        counts(aligned(static_cast<size_t>(RowCut::divided(rows, kSortTile) * kDigits) * sizeof(uint32_t))),
        sums(static_cast<size_t>(2 * RowCut::divided(rows, kSortedTile) * columns) * sizeof(float)) {}
  constexpr size_t bytes() const { return 2 * pairs + counts + sums; }

 private:
  static constexpr size_t aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }
};

/// The partial sums, in fp64, of a tensor of n elements.
constexpr int64_t sum_blocks(int64_t n) {
  constexpr int64_t kMaxBlocks = 1024, kMinElements = 4096;
  const int64_t blocks = RowCut::divided(n, kMinElements);
  return blocks < kMaxBlocks ? blocks : kMaxBlocks;
}
constexpr size_t sum_bytes(int64_t n) {
  return static_cast<size_t>(sum_blocks(n)) * sizeof(double);
}

/// How attention of a few queries divides the keys that some query sees: into parts of `size` keys from
/// `first` on, as many as give about kBlocks blocks of threads work. A block takes kRows rows, which are the
/// queries of the heads of a group.
struct DecodeCut {
  static constexpr int64_t kRows = 4, kMinSize = 256, kBlocks = 1024;
  int64_t first, size, parts;
  /// `tiles`: blocks that each part has.
  constexpr DecodeCut(int64_t first_key, int64_t end, int64_t tiles) : first(first_key), size(0), parts(0) {
    const int64_t most = kBlocks > tiles ? kBlocks / (tiles > 0 ? tiles : 1) : 1, keys = end - first_key;
    size = RowCut::divided(keys > 0 ? keys : 1, most);
    if (size < kMinSize) size = kMinSize;
    parts = RowCut::divided(keys > 0 ? keys : 1, size);
  }
};
/// For each row and part, a row of the output and two more numbers, in fp32.
constexpr size_t decode_bytes(const DecodeCut& cut, int64_t rows, int64_t head) {
  return static_cast<size_t>(rows * cut.parts * (head + 2)) * sizeof(float);
}

}  // namespace megalith::cuda
