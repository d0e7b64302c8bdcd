#pragma once

#include "libcore/text/pretokenize/block_scan_inl.h"

namespace megalith {
namespace {

/// Block operations with AVX-512 and VBMI2.
class Avx512 {
 public:
  explicit Avx512(const uint8_t* flags) {
    for (size_t i = 0; i < 4; ++i) flags_[i] = _mm512_loadu_si512(flags + 64 * i);
  }

  Block classify(const char* at) const {
    const __m512i bytes = _mm512_loadu_si512(at);
    const __mmask64 high = _mm512_movepi8_mask(bytes);
    __m512i flags = _mm512_permutex2var_epi8(flags_[0], bytes, flags_[1]);
    Block out;
    if (high != 0) {
      flags = _mm512_mask_blend_epi8(high, flags, _mm512_permutex2var_epi8(flags_[2], bytes, flags_[3]));
      out.continuation = with(flags, kScanContinuation);
      out.mixed = with(flags, kScanMixedLead);
    }
    out.letter = with(flags, kScanLetter);
    out.number = with(flags, kScanNumber);
    out.space = with(flags, kScanSpace);
    out.line_end = with(flags, kScanLineEnd);
    out.blank = with(flags, kScanBlank);
    out.apostrophe = with(flags, kScanApostrophe);
    return out;
  }

  AsciiCase ascii_case(const char* at) const {
    const __m512i bytes = _mm512_loadu_si512(at);
    const __m512i from_a = _mm512_sub_epi8(bytes, _mm512_set1_epi8('A'));
    return {.ascii = ~uint64_t{_mm512_movepi8_mask(bytes)},
            .upper = _mm512_cmplt_epu8_mask(from_a, _mm512_set1_epi8(26)),
            .slash = _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8('/'))};
  }

  ByteSegments segments(const char* at) const {
    const __m512i bytes = _mm512_loadu_si512(at);
    const auto is_in = [&](char first, char count) -> uint64_t {
      return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(bytes, _mm512_set1_epi8(first)), _mm512_set1_epi8(count));
    };
    return {.ascii = ~uint64_t{_mm512_movepi8_mask(bytes)},
            .other = (is_in('\0', 0x20) & ~is_in('\t', 5)) | is_in(0x7F, 1),
            .han = is_in(static_cast<char>(0xE5), 4)};
  }

  /// Writes `at` plus the index of each set bit of `bits`. In all it writes 32 values, or 64 if more than 32
  /// bits are set; those beyond the number of set bits are meaningless.
  static void write(uint64_t bits, uint32_t at, uint32_t* out) {
    const __m512i places = _mm512_maskz_compress_epi8(bits, iota());
    const __m512i base = _mm512_set1_epi32(static_cast<int>(at));
    // maskz: without it, GCC 12 warns about its own headers.
    const auto store = [&](size_t i, __m128i sixteen) {
      _mm512_storeu_si512(out + 16 * i, _mm512_add_epi32(base, _mm512_maskz_cvtepu8_epi32(0xFFFF, sixteen)));
    };
    store(0, _mm512_maskz_extracti32x4_epi32(0xF, places, 0));
    store(1, _mm512_maskz_extracti32x4_epi32(0xF, places, 1));
    if (__builtin_popcountll(bits) > 32) {
      store(2, _mm512_maskz_extracti32x4_epi32(0xF, places, 2));
      store(3, _mm512_maskz_extracti32x4_epi32(0xF, places, 3));
    }
  }

  /// Copies `bytes` bytes, at most 67, and zeros after them, 68 in all. The last block of a text is read so,
  /// and most lines have only one.
  static void copy_padded(const char* from, size_t bytes, char* to) {
    _mm512_storeu_si512(to, _mm512_maskz_loadu_epi8(_bzhi_u64(~uint64_t{0}, bytes), from));
    std::memset(to + kBlock, 0, 4);
    for (size_t i = kBlock; i < bytes; ++i) to[i] = from[i];
  }

 private:
  static uint64_t with(__m512i flags, BlockFlag flag) {
    return _mm512_test_epi8_mask(flags, _mm512_set1_epi8(static_cast<char>(flag)));
  }
  static __m512i iota() {
    alignas(64) static constexpr auto kIota = [] {
      std::array<uint8_t, 64> numbers{};
      for (uint8_t i = 0; i < 64; ++i) numbers[i] = i;
      return numbers;
    }();
    return _mm512_load_si512(kIota.data());
  }
  __m512i flags_[4];
};

}  // namespace
}  // namespace megalith
