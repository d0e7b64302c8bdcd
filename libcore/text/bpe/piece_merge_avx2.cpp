#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/text/bpe/piece_merge_inl.h"

namespace megalith {
namespace {

struct Avx2 {
  static __m256i load(const int32_t* steps) {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(steps));
  }
  static int32_t least(__m256i eight) {
    __m128i four = _mm_min_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
    four = _mm_min_epi32(four, _mm_unpackhi_epi64(four, four));
    four = _mm_min_epi32(four, _mm_shuffle_epi32(four, 1));
    return _mm_cvtsi128_si32(four);
  }
  static int32_t min_step(const int32_t* steps) {
    return least(_mm256_min_epi32(load(steps), load(steps + 8)));
  }
  static int32_t min_of(const int32_t* steps, size_t count) {
    __m256i eight = load(steps);
    for (size_t i = 8; i < count; i += 8) eight = _mm256_min_epi32(eight, load(steps + i));
    return least(eight);
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

size_t merge_one_avx2(const MergeTables& tables, const uint8_t* bytes, int32_t* ids, size_t n) {
  return merge_one_piece<Avx2>(tables, bytes, ids, n);
}

}  // namespace megalith
#endif
