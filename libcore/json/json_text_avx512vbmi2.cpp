#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include <immintrin.h>

#include "libcore/json/json_text_inl.h"

namespace megalith {
namespace {

constexpr uint64_t kBlock = 64;
constexpr uint64_t kAll = ~uint64_t{0};

uint64_t below(uint64_t n) {  // the lowest n bits set; n <= 64
  return _bzhi_u64(kAll, static_cast<unsigned>(n));
}

/// 64 bytes of a string, and a mask of those before its end.
struct Block {
  Block(const char* at, const char* end) {
    const auto left = static_cast<uint64_t>(end - at);
    if (left >= kBlock) [[likely]] {
      bytes = _mm512_loadu_si512(at);
    } else {
      valid = below(left);
      bytes = _mm512_maskz_loadu_epi8(valid, at);
    }
  }
  uint64_t is(char c) const { return _mm512_mask_cmpeq_epi8_mask(valid, bytes, _mm512_set1_epi8(c)); }
  uint64_t control() const { return _mm512_mask_cmple_epu8_mask(valid, bytes, _mm512_set1_epi8(0x1F)); }
  uint64_t high() const { return _mm512_movepi8_mask(bytes); }
  __m512i bytes;
  uint64_t valid = kAll;
};

/// Looks up each byte in a table of 128 entries, by its lower seven bits.
template <class Table>
__m512i look_up(const Table& table, __m512i bytes) {
  return _mm512_permutex2var_epi8(_mm512_loadu_si512(table.data()), bytes,
                                  _mm512_loadu_si512(table.data() + 64));
}

/// Writes the bytes whose bits are set in `kept`, end to end, and moves `out` past them. All 64 bytes at the
/// old `out` are overwritten.
void write(char*& out, __m512i bytes, uint64_t kept) {
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(kept, bytes));
  out += _mm_popcnt_u64(kept);
}

/// A mask of the escaped bytes: those after a backslash that is not itself escaped. In a run of backslashes,
/// every second one is escaped. The block must not begin with an escaped byte (Langdale and Lemire, "Parsing
/// gigabytes of JSON per second", 3.1.1).
uint64_t escaped_by(uint64_t backslashes) {
  constexpr uint64_t kEven = 0x5555555555555555;
  const uint64_t follows = backslashes << 1;
  const uint64_t odd_starts = backslashes & ~kEven & ~follows;
  // For each run of backslashes that begins at an odd place, the addition carries to the bit after the run.
  const uint64_t even_runs = odd_starts + backslashes;
  return (kEven ^ (even_runs << 1)) & follows;
}

constexpr auto kSimpleEscapes = [] {
  auto table = kEscapes;
  table['u'] = 0;
  return table;
}();

/// The offsets of the four digits of each of ten consecutive \uXXXX, for a vector with 32 bits per escape.
constexpr auto kDigitPlaces = [] {
  std::array<uint8_t, 64> places{};
  for (unsigned unit = 0; unit < 10; ++unit)
    for (unsigned digit = 0; digit < 4; ++digit)
      places[4 * unit + digit] = static_cast<uint8_t>(6 * unit + 2 + digit);
  return places;
}();

/// Repeats a pattern of six bits ten times.
constexpr uint64_t each_sixth(uint64_t pattern) {
  uint64_t bits = 0;
  for (int i = 0; i < 10; ++i) bits |= pattern << (6 * i);
  return bits;
}

/// Converts UTF-16 units, one in each 32 bits, to UTF-8. Each result is in the same 32 bits as its unit,
/// padded with zeros.
__m512i utf8_of(__m512i units) {
  const auto bits = [](unsigned value) { return _mm512_set1_epi32(static_cast<int>(value)); };
  const __m512i low = _mm512_or_si512(_mm512_and_si512(units, bits(0x3F)), bits(0x80));
  // maskz: without it, GCC 12 warns about its own headers.
  const __m512i above = _mm512_maskz_srli_epi32(0xFFFF, units, 6);
  const __m512i two =
      _mm512_or_si512(_mm512_or_si512(above, bits(0xC0)), _mm512_maskz_slli_epi32(0xFFFF, low, 8));
  const __m512i middle = _mm512_or_si512(_mm512_and_si512(above, bits(0x3F)), bits(0x80));
  const __m512i three = _mm512_or_si512(
      _mm512_or_si512(_mm512_maskz_srli_epi32(0xFFFF, units, 12), bits(0xE0)),
      _mm512_or_si512(_mm512_maskz_slli_epi32(0xFFFF, middle, 8), _mm512_maskz_slli_epi32(0xFFFF, low, 16)));
  const __m512i short_ones = _mm512_mask_blend_epi32(_mm512_cmpge_epu32_mask(units, bits(0x80)), units, two);
  return _mm512_mask_blend_epi32(_mm512_cmpge_epu32_mask(units, bits(0x800)), short_ones, three);
}

/// Decodes up to ten consecutive \uXXXX from stop.at on. Returns false if decode() must stop there.
bool decode_units(JsonText::Stop& stop, const char* end) {
  constexpr uint64_t kBackslashes = each_sixth(1), kMarks = each_sixth(2), kDigits = each_sixth(0b111100);
  const Block block(stop.at, end);
  const __m512i values = look_up(kHexDigits, block.bytes);
  const uint64_t digits = ~(_mm512_movepi8_mask(values) | block.high()) & block.valid;
  const uint64_t good = (block.is('\\') & kBackslashes) | (block.is('u') & kMarks) | (digits & kDigits);
  uint64_t count = _tzcnt_u64(~good) / 6;
  const __m512i gathered =
      _mm512_maskz_permutexvar_epi8(kAll, _mm512_loadu_si512(kDigitPlaces.data()), values);
  const __m512i bytes = _mm512_maddubs_epi16(gathered, _mm512_set1_epi16(0x0110));  // weights 16 and 1
  const __m512i units = _mm512_madd_epi16(bytes, _mm512_set1_epi32(0x00010100));    // weights 256 and 1
  const uint64_t halves =
      _mm512_cmpeq_epi32_mask(_mm512_and_si512(units, _mm512_set1_epi32(0xF800)), _mm512_set1_epi32(0xD800));
  const uint64_t whole = _tzcnt_u64(halves);
  count = whole < count ? whole : count;
  if (count == 0) return false;
  const __m512i text = utf8_of(units);
  // so U+0000 keeps its zero byte
  const uint64_t kept = _mm512_test_epi8_mask(text, text) | 0x1111111111111111;
  write(stop.out, text, kept & below(4 * count));
  stop.at += 6 * count;
  return true;
}

JsonText::Stop decode_vbmi2(const char* at, const char* end, char* out) {
  JsonText::Stop stop{at, out};
  while (stop.at < end) {
    const Block block(stop.at, end);
    const uint64_t backslashes = block.is('\\'), others = block.is('"') | block.control();
    if (backslashes == 0) {
      const uint64_t plain = _tzcnt_u64(others | ~block.valid);
      _mm512_storeu_si512(stop.out, block.bytes);
      stop.at += plain;
      stop.out += plain;
      if (others != 0) return stop;
      continue;
    }
    const uint64_t escaped = escaped_by(backslashes) & block.valid, escapes = backslashes & ~escaped;
    const __m512i meant = look_up(kSimpleEscapes, block.bytes);
    const uint64_t odd =
        escaped & (_mm512_testn_epi8_mask(meant, meant) | block.high());  // \u escapes and invalid escapes
    const uint64_t cut = escapes & ~(block.valid >> 1);  // escapes whose second byte is in the next block
    const uint64_t plain = _tzcnt_u64((others & ~escaped) | odd >> 1 | cut | ~block.valid);
    write(stop.out, _mm512_mask_mov_epi8(block.bytes, escaped, meant), ~escapes & below(plain));
    stop.at += plain;
    if (plain == kBlock) continue;
    const uint64_t here = uint64_t{1} << plain;
    if ((odd >> 1 & here) != 0 ? !decode_units(stop, end) : (cut & here) == 0 || end - stop.at < 2)
      return stop;
  }
  return stop;
}

const char* find_special_avx512(const char* at, const char* end) {
  for (; at < end; at += end - at < 64 ? end - at : 64) {
    const Block block(at, end);
    const uint64_t special = block.is('\\') | block.is('"') | block.control();
    if (special != 0) return at + _tzcnt_u64(special);
  }
  return end;
}

}  // namespace

const JsonText kJsonTextAvx512Vbmi2 = {find_special_avx512, decode_vbmi2};

}  // namespace megalith
#endif
