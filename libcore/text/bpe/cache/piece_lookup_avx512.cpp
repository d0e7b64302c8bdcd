#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
// GCC 12 takes the initial value of its own intrinsics' results for uninitialized. At -O1 it may also store
// an eight-bit mask by kmovb and read four bytes back: no such mask is converted to a number here, and masks
// that must be numbers are made by movemask.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "libcore/text/bpe/cache/piece_lookup.h"

namespace megalith {
namespace {

/// The keys of four pieces. Each lane of `bytes` holds a piece's bytes and what follows them; each byte of a
/// lane of `sizes` holds the piece's size.
__m512i keys_of(__m512i bytes, __m512i sizes) {
  const __m512i places =
      _mm512_broadcast_i64x2(_mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  const __m512i masked = _mm512_maskz_mov_epi8(_mm512_cmplt_epu8_mask(places, sizes), bytes);
  return _mm512_mask_mov_epi8(masked, 0x8000'8000'8000'8000, sizes);  // see PieceKey
}

/// The 16 bytes of `text` from each of four `begins`.
__m512i bytes_at(const char* text, const uint32_t* begins) {
  const auto at = [&](size_t i) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + begins[i]));
  };
  __m512i all = _mm512_zextsi128_si512(at(0));
  all = _mm512_inserti32x4(all, at(1), 1);
  all = _mm512_inserti32x4(all, at(2), 2);
  return _mm512_inserti32x4(all, at(3), 3);
}

/// The places of four keys in the table, each in both words of its lane.
__m512i places_of(__m512i keys, const PieceTable::Hash& hash) {
  const __m512i factors = _mm512_broadcast_i64x2(
      _mm_set_epi64x(static_cast<int64_t>(hash.kHigh), static_cast<int64_t>(hash.kLow)));
  const __m512i turns = _mm512_broadcast_i64x2(_mm_set_epi64x(hash.kTurn, 0));
  const __m512i products = _mm512_mullo_epi64(_mm512_rolv_epi64(keys, turns), factors);
  const __m512i sums = _mm512_add_epi64(products, _mm512_shuffle_epi32(products, _MM_PERM_BADC));
  return _mm512_srl_epi64(sums, _mm_cvtsi32_si128(hash.shift));
}

/// Which of eight keys equal the key of entry number `entry` in their lines; bit i stands for the i-th key.
unsigned equal_keys(const PieceQueries& queries, size_t from, size_t entry) {
  unsigned words = 0;
  for (size_t i = from; i < from + kTogether; i += 2) {
    const auto key = [&](size_t line) {
      __m128i loaded =
          _mm_load_si128(reinterpret_cast<const __m128i*>(&queries.lines[line]->entries[entry].key));
      asm("" : "+v"(loaded));  // a load of its own, which is atomic: see PieceTable
      return loaded;
    };
    const __m256i found = _mm256_inserti128_si256(_mm256_castsi128_si256(key(i)), key(i + 1), 1);
    const __m256i wanted = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(queries.keys + i));
    const int equal = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(found, wanted)));
    words |= static_cast<unsigned>(equal) << (2 * (i - from));
  }
  return static_cast<unsigned>(_pext_u32(words & words >> 1, 0x5555));
}

}  // namespace

size_t take_keys_avx512(const PieceTable& table, const PieceRun& run, const PiecePlaces& out) {
  const char* const text = run.text.data();
  const auto* const lines = reinterpret_cast<const char*>(table.lines().data());
  const PieceTable::Hash hash = table.hash();
  const __m512i first_sizes = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  const __m512i last_sizes = _mm512_add_epi32(first_sizes, _mm512_set1_epi32(4));
  const __m512i in_order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  size_t n = 0;
  uint32_t begin = run.begin;
  for (; n + kTogether <= run.ends.size(); n += kTogether) {
    const uint32_t* const ends = run.ends.data() + n;
    const __m256i end8 = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(ends));
    const __m256i begin8 = _mm256_alignr_epi32(end8, _mm256_set1_epi32(static_cast<int>(begin)), 7);
    const __m256i size8 = _mm256_sub_epi32(end8, begin8);
    if (ends[kTogether - 2] + sizeof(PieceKey) > run.text.size()) break;
    const __m256i longer8 = _mm256_cmpgt_epi32(size8, _mm256_set1_epi32(PieceKey::kLongest));
    const auto longer = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(longer8)));
    uint32_t* const begins = out.begins + n;
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(begins), begin8);
    const __m512i sizes = _mm512_zextsi256_si512(size8);
    const auto of_lanes = [&](__m512i numbers) {
      return _mm512_shuffle_epi8(_mm512_permutexvar_epi32(numbers, sizes), _mm512_setzero_si512());
    };
    const std::array<uint32_t, 4> first{begin, ends[0], ends[1], ends[2]};
    const __m512i keys[] = {keys_of(bytes_at(text, first.data()), of_lanes(first_sizes)),
                            keys_of(bytes_at(text, ends + 3), of_lanes(last_sizes))};
    _mm512_storeu_si512(out.keys + n, keys[0]);
    _mm512_storeu_si512(out.keys + n + 4, keys[1]);
    const __m512i places = _mm512_permutexvar_epi64(
        in_order, _mm512_mask_blend_epi64(0xAA, places_of(keys[0], hash), places_of(keys[1], hash)));
    const __m512i addresses =
        _mm512_add_epi64(_mm512_slli_epi64(places, 6),
                         _mm512_set1_epi64(static_cast<int64_t>(reinterpret_cast<intptr_t>(lines))));
    static_assert(sizeof(PieceTable::Line) == 64);
    _mm512_storeu_si512(out.lines + n, addresses);
    for (size_t i = 0; i < kTogether; ++i) _mm_prefetch(out.lines[n + i], _MM_HINT_T0);
    if (longer != 0) return n + static_cast<size_t>(std::countr_zero(longer));
    begin = ends[kTogether - 1];
  }
  return n;
}

size_t find_entries_avx512(const PieceQueries& queries, const PieceAnswers& answers) {
  static_assert(sizeof(PieceTable::Entry) == 32);
  const __m256i numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  size_t unknown = 0, i = 0;
  for (; i + kTogether <= queries.count; i += kTogether) {
    const unsigned first = equal_keys(queries, i, 0), second = equal_keys(queries, i, 1);
    const __m512i lines = _mm512_loadu_si512(queries.lines + i);
    _mm512_storeu_si512(answers.entries + i, _mm512_mask_add_epi64(lines, static_cast<__mmask8>(second),
                                                                   lines, _mm512_set1_epi64(32)));
    const auto none = static_cast<__mmask8>(~(first | second));
    const __m256i which = _mm256_add_epi32(numbers, _mm256_set1_epi32(static_cast<int>(answers.first + i)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(answers.unknown + unknown),
                     _mm256_cvtepi32_epi16(_mm256_maskz_compress_epi32(none, which)));
    unknown += static_cast<size_t>(_mm_popcnt_u32(none));
  }
  const PieceQueries rest{queries.keys + i, queries.lines + i, queries.count - i};
  return unknown + find_entries_generic(rest, {answers.entries + i, answers.unknown + unknown,
                                               static_cast<uint16_t>(answers.first + i)});
}

}  // namespace megalith
#endif
