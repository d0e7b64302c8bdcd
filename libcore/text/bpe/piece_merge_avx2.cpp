#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/text/bpe/piece_merge_inl.h"

namespace megalith {
namespace {

struct Avx2 {
  static int32_t min_step(const int32_t* steps) {
    const __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(steps));
    const __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(steps + 8));
    const __m256i eight = _mm256_min_epi32(a, b);
    __m128i four = _mm_min_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_min_epi32(four, _mm_unpackhi_epi64(four, four));
    four = _mm_min_epi32(four, _mm_shuffle_epi32(four, 1));
    return _mm_cvtsi128_si32(four);
  }
  static uint32_t rank(const MergeTables& tables, uint64_t pair) {
    const size_t last = (size_t{1} << (64 - tables.shift)) - 1;
    const __m256i wanted = _mm256_set1_epi64x(static_cast<int64_t>(pair));
    for (size_t at = tables.place(pair);; at = (at + 1) & last) {
      const __m256i slots = _mm256_load_si256(reinterpret_cast<const __m256i*>(tables.buckets + at));
      const __m256i same = _mm256_cmpeq_epi64(_mm256_srli_epi64(slots, MergeTables::kRankBits), wanted);
      // Picks the pair's slot, or zero; its low half holds the rank.
      const __m256i mine = _mm256_and_si256(slots, same);
      __m128i two = _mm_or_si128(_mm256_castsi256_si128(mine), _mm256_extracti128_si256(mine, 1));
      two = _mm_or_si128(two, _mm_unpackhi_epi64(two, two));
      const uint32_t rank = static_cast<uint32_t>(_mm_cvtsi128_si32(two)) & (MergeTables::kNoRank - 1);
      const uint32_t found = rank | static_cast<uint32_t>(_mm256_testz_si256(same, same))
                                        << MergeTables::kRankBits;  // kNoRank where there is none
      if (tables.buckets[at].slots[3] == MergeTables::kFree || found < MergeTables::kNoRank) [[likely]]
        return found;
    }
  }
};

}  // namespace

void merge_pieces_avx2(const MergeTables& tables, std::span<const PieceKey> keys, MergedPiece* out) {
  PieceMerger<Avx2, BytePieces>(tables, {tables, keys.data(), out}, keys.size()).run();
}

void merge_symbols_avx2(const MergeTables& tables, std::span<MergedPiece* const> pieces) {
  PieceMerger<Avx2, SymbolPieces<Avx2>>(tables, {tables, pieces.data()}, pieces.size()).run();
}

}  // namespace megalith
#endif
