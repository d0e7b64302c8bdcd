#pragma once

#include "libcore/text/pretokenize/block_scan_inl.h"

namespace megalith {
namespace {

/// Block operations with AVX2.
class Avx2 {
 public:
  explicit Avx2(const uint8_t*) {}  // the argument is not needed: ASCII has the same classes in all patterns

  Block classify(const char* at) const {
    const Half low(at), high(at + 32);
    Block out;
    out.letter = join(low.letter(), high.letter());
    out.number = join(low.number(), high.number());
    out.blank = join(low.is(' '), high.is(' '));
    out.space = out.blank | join(low.control_space(), high.control_space());
    out.line_end = join(low.line_end(), high.line_end());
    out.apostrophe = join(low.is('\''), high.is('\''));
    const uint64_t beyond_ascii = join(low.bytes, high.bytes);
    if (beyond_ascii != 0) {
      out.mixed = join(low.lead(), high.lead());
      out.continuation = beyond_ascii & ~out.mixed;
    }
    return out;
  }

  AsciiCase ascii_case(const char* at) const {
    const Half low(at), high(at + 32);
    return {.ascii = ~join(low.bytes, high.bytes),
            .upper = join(low.upper(), high.upper()),
            .slash = join(low.is('/'), high.is('/'))};
  }

  ByteSegments segments(const char* at) const {
    const Half low(at), high(at + 32);
    return {.ascii = ~join(low.bytes, high.bytes),
            .other = join(low.control(), high.control()) & ~join(low.control_space(), high.control_space()),
            .han = join(low.han_lead(), high.han_lead())};
  }

  /// Writes `at` plus the index of each set bit of `bits`, and up to 8 more values, since it writes whole
  /// groups. Uses tzcnt, which is defined for 0, whereas the compiler's builtin is not.
  static void write(uint64_t bits, uint32_t at, uint32_t* out) {
    const int count = __builtin_popcountll(bits);
    for (int done = 0; done < count; done += 8)
      for (int i = 0; i < 8; ++i) {
        out[done + i] = at + static_cast<uint32_t>(_tzcnt_u64(bits));
        bits &= bits - 1;
      }
  }

  /// Copies `bytes` bytes, at most 67, and zeros after them, 68 in all.
  static void copy_padded(const char* from, size_t bytes, char* to) {
    std::memset(to, 0, kBlock + 4);
    std::memcpy(to, from, bytes);
  }

 private:
  struct Half {
    explicit Half(const char* at) : bytes(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))) {}
    __m256i is(char c) const { return _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(c)); }
    /// Which bytes are in [first, first + count).
    static __m256i in_range(__m256i bytes, char first, char count) {
      const __m256i from = _mm256_sub_epi8(bytes, _mm256_set1_epi8(first));
      const __m256i last = _mm256_set1_epi8(static_cast<char>(count - 1));
      return _mm256_cmpeq_epi8(_mm256_min_epu8(from, last), from);
    }
    __m256i letter() const { return in_range(_mm256_or_si256(bytes, _mm256_set1_epi8(0x20)), 'a', 26); }
    __m256i upper() const { return in_range(bytes, 'A', 26); }
    __m256i number() const { return in_range(bytes, '0', 10); }
    __m256i control_space() const { return in_range(bytes, '\t', 5); }
    __m256i control() const { return _mm256_or_si256(in_range(bytes, '\0', 0x20), is(0x7F)); }
    __m256i han_lead() const { return in_range(bytes, static_cast<char>(0xE5), 4); }
    __m256i line_end() const { return _mm256_or_si256(is('\n'), is('\r')); }
    __m256i lead() const { return in_range(bytes, static_cast<char>(0xC0), 64); }
    __m256i bytes;
  };
  static uint64_t join(__m256i low, __m256i high) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
           uint64_t{static_cast<uint32_t>(_mm256_movemask_epi8(high))} << 32;
  }
};

}  // namespace
}  // namespace megalith
