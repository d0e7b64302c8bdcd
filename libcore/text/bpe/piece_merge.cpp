#include "libcore/text/bpe/piece_merge_inl.h"

namespace megalith {
namespace {

struct Scalar {
  static int32_t min_step(const int32_t* steps) {
    int32_t best = steps[0];
    for (size_t i = 1; i < kPlaces; ++i) best = best < steps[i] ? best : steps[i];
    return best;
  }
  static int32_t min_of(const int32_t* steps, size_t count) {
    int32_t best = steps[0];
    for (size_t i = 1; i < count; ++i) best = best < steps[i] ? best : steps[i];
    return best;
  }
  static uint32_t rank(const MergeTables& tables, uint64_t pair) { return tables.rank(pair); }
};

}  // namespace

void merge_pieces_generic(const MergeTables& tables, std::span<const PieceKey> keys, MergedPiece* out) {
  PieceMerger<Scalar, BytePieces>(tables, {tables, keys.data(), out}, keys.size()).run();
}

void merge_symbols_generic(const MergeTables& tables, std::span<MergedPiece* const> pieces) {
  PieceMerger<Scalar, SymbolPieces<Scalar>>(tables, {tables, pieces.data()}, pieces.size()).run();
}

size_t merge_one_generic(const MergeTables& tables, const uint8_t* bytes, int32_t* ids, size_t n) {
  return merge_one_piece<Scalar>(tables, bytes, ids, n);
}

PieceMerging piece_merging(Isa isa) {
  return {
      .bytes = select<MergePieces>(
          isa, {.generic = merge_pieces_generic, .avx2 = MEGALITH_IF_SIMD(merge_pieces_avx2)}),
      .symbols = select<MergeSymbols>(
          isa, {.generic = merge_symbols_generic, .avx2 = MEGALITH_IF_SIMD(merge_symbols_avx2)}),
      .one = select<MergeOne>(isa, {.generic = merge_one_generic, .avx2 = MEGALITH_IF_SIMD(merge_one_avx2)})};
}

}  // namespace megalith
