#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
// GCC 12 takes the initial value of its own intrinsics' results for uninitialized. At -O1 it may also store a
// mask of fewer than 32 bits and read four bytes back, so no such mask is converted to a number here.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>

#include "libcore/text/bpe/cache/piece_cutter.h"

namespace megalith {
namespace {

constexpr size_t kAtOnce = 16;  // pretokens

class Cutter {
 public:
  Cutter(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out)
      : borders_(borders), text_(pretokens.text.data()), ends_(pretokens.ends.data()), out_(out) {
    for (size_t i = 0; i < 4; ++i) doubts_[i] = _mm512_loadu_si512(borders.doubts().data() + 64 * i);
  }

  uint32_t* run(size_t count) {
    size_t next = uncut(count);
    if (next == count) return nullptr;
    __builtin_memcpy(out_, ends_, next * sizeof *out_);
    out_ += next;
    begin_ = next > 0 ? ends_[next - 1] : 0;
    for (; next + kAtOnce <= count; next += kAtOnce) take_together(ends_ + next);
    for (; next < count; ++next) {
      if (ends_[next] - begin_ > PieceKey::kLongest)
        cut(ends_[next]);
      else
        *out_++ = begin_ = ends_[next];
    }
    return out_;
  }

 private:
  /// The number of pretokens at the beginning that need no cut, counted in whole groups.
  size_t uncut(size_t count) const {
    uint32_t begin = 0;
    for (size_t next = 0; next < count; next += kAtOnce) {
      const size_t some = count - next < kAtOnce ? count - next : kAtOnce;
      uint32_t longer = some < kAtOnce ? (1U << some) - 1 : are_longer(ends_ + next, begin);
      for (; longer != 0; longer &= longer - 1) {
        const auto i = static_cast<size_t>(__builtin_ctz(longer));
        if (has_leads(i > 0 ? ends_[next + i - 1] : begin, ends_[next + i])) return next;
      }
      begin = ends_[next + some - 1];
    }
    return count;
  }

  /// A bit for each of kAtOnce pretokens: whether it is longer than a short piece, so that it may have to be
  /// cut.
  static uint32_t are_longer(const uint32_t* ends, uint32_t begin) {
    const __m512i end16 = _mm512_loadu_si512(ends);
    const __m512i begin16 = _mm512_alignr_epi32(end16, _mm512_set1_epi32(static_cast<int>(begin)), 15);
    const __m128i sizes = _mm512_cvtusepi32_epi8(_mm512_sub_epi32(end16, begin16));
    const __m128i over = _mm_subs_epu8(sizes, _mm_set1_epi8(PieceKey::kLongest));
    return ~static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(over, _mm_setzero_si128()))) & 0xFFFF;
  }

  /// Whether a pretoken is longer than a short piece and has a character outside ASCII, the only place for a
  /// cut.
  bool has_leads(uint32_t begin, uint32_t end) const {
    if (end - begin <= PieceKey::kLongest) return false;
    __m512i max_bytes = _mm512_setzero_si512();
    for (uint32_t at = begin; at < end; at += 64)
      max_bytes = _mm512_max_epu8(max_bytes, _mm512_maskz_loadu_epi8(first_bits(end - at), text_ + at));
    return _mm512_cmpge_epu8_mask(max_bytes, _mm512_set1_epi8(static_cast<char>(0xC0))) != 0;
  }

  static uint64_t first_bits(uint32_t count) {
    return count < 64 ? (uint64_t{1} << count) - 1 : ~uint64_t{0};
  }

  void take_together(const uint32_t* ends) {
    const __m512i end16 = _mm512_loadu_si512(ends);
    _mm512_storeu_si512(out_, end16);
    size_t done = 0;
    for (uint32_t longer = are_longer(ends, begin_); longer != 0; longer &= longer - 1) {
      const auto i = static_cast<size_t>(__builtin_ctz(longer));
      out_ += i - done;
      begin_ = i > 0 ? ends[i - 1] : begin_;
      cut(ends[i]);
      done = i + 1;
      // The ends of the pretokens that follow are stored again, after those that cut() wrote.
      const __m512i rest = _mm512_add_epi32(iota32(), _mm512_set1_epi32(static_cast<int>(done)));
      _mm512_storeu_si512(out_, _mm512_permutexvar_epi32(rest, end16));
    }
    out_ += kAtOnce - done;
    begin_ = ends[kAtOnce - 1];
  }

  /// Writes the ends of the pieces of [begin_, end).
  void cut(uint32_t end) {
    for (uint32_t at = begin_ + 1; at < end; at += 64) {
      const uint64_t inside = first_bits(end - at);
      const __m512i bytes = _mm512_maskz_loadu_epi8(inside, text_ + at);
      const __m512i before = _mm512_maskz_loadu_epi8(inside, text_ + at - 1);
      const uint64_t leads = _mm512_cmpge_epu8_mask(bytes, _mm512_set1_epi8(static_cast<char>(0xC0)));
      if (leads == 0) continue;
      uint64_t borders = leads;
      for (uint64_t left = doubtful(bytes, before) & leads; left != 0; left &= left - 1) {
        const auto i = static_cast<uint32_t>(__builtin_ctzll(left));
        if (borders_.joins({text_ + begin_, end - begin_}, at + i - begin_)) borders ^= uint64_t{1} << i;
      }
      write(borders, at);
    }
    *out_++ = begin_ = end;
  }

  /// A bit for each byte: whether it begins a character that may be joined to the byte before it.
  uint64_t doubtful(__m512i bytes, __m512i before) const {
    const __m512i low = _mm512_permutex2var_epi8(doubts_[0], before, doubts_[1]);
    const __m512i high = _mm512_permutex2var_epi8(doubts_[2], before, doubts_[3]);
    const __m512i doubts = _mm512_mask_blend_epi8(_mm512_movepi8_mask(before), low, high);
    const __m512i bit_of_number = _mm512_set1_epi64(static_cast<int64_t>(0x8040'2010'0804'0201));
    const __m512i numbers = _mm512_and_si512(bytes, _mm512_set1_epi8(7));
    return _mm512_test_epi8_mask(doubts, _mm512_shuffle_epi8(bit_of_number, numbers));
  }

  /// Writes `at` plus the index of each set bit of `bits`, and up to 16 more values: it writes whole
  /// registers.
  void write(uint64_t bits, uint32_t at) {
    alignas(64) char places[64];
    _mm512_store_si512(places, _mm512_maskz_compress_epi8(bits, iota8()));
    const __m512i base = _mm512_set1_epi32(static_cast<int>(at));
    const int count = __builtin_popcountll(bits);
    for (int i = 0; i < count; i += 16) {
      const __m128i sixteen = _mm_load_si128(reinterpret_cast<const __m128i*>(places + i));
      _mm512_storeu_si512(out_ + i, _mm512_add_epi32(base, _mm512_maskz_cvtepu8_epi32(0xFFFF, sixteen)));
    }
    out_ += count;
  }

  static __m512i iota32() { return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15); }
  static __m512i iota8() {
    alignas(64) static constexpr auto kIota = [] {
      std::array<uint8_t, 64> numbers{};
      for (uint8_t i = 0; i < 64; ++i) numbers[i] = i;
      return numbers;
    }();
    return _mm512_load_si512(kIota.data());
  }

  const MergeBorders& borders_;
  const char* text_;
  const uint32_t* ends_;
  uint32_t* out_;
  uint32_t begin_ = 0;  // beginning of the next pretoken
  __m512i doubts_[4];
};

}  // namespace

uint32_t* cut_pieces_avx512vbmi2(const MergeBorders& borders, const PretokenEnds& pretokens, uint32_t* out) {
  return Cutter(borders, pretokens, out).run(pretokens.ends.size());
}

}  // namespace megalith
#endif
