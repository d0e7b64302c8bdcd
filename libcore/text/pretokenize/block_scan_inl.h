#pragma once

#include <cstring>

#include <immintrin.h>

#include "libcore/text/pretokenize/block_scan.h"

/// Reads a text in blocks, for source files that are compiled for one instruction set; needs BMI2. It must
/// not call inline functions of other headers that the compiler might not inline: the linker keeps a single
/// copy of such a function, perhaps one that only some processors can run.
namespace megalith {
namespace {

inline constexpr size_t kBlock = 64;

/// Masks with one bit for each byte of a block. letter, number and space say which class of characters the
/// byte belongs to.
struct Block {
  uint64_t letter = 0, number = 0, space = 0;
  uint64_t line_end = 0, blank = 0, apostrophe = 0;
  uint64_t mixed = 0;         // set only while the block is read
  uint64_t continuation = 0;  // bytes other than the first of their character
  uint64_t valid = 0;         // bytes that are not beyond the end of the text
  // For cased patterns only: slashes, and letters by their case. A letter that has a case is marked by its
  // first byte only, other letters by all their bytes.
  uint64_t upper = 0, lower = 0, both = 0, mark = 0, slash = 0;
  // For patterns with segments only: Han and Kana, what is of no class, and ASCII.
  uint64_t han = 0, other = 0, ascii = 0;
  uint64_t sign() const { return valid & ~(letter | number | space); }
  uint64_t gap() const { return space & ~line_end; }  // spaces that end no line
};

/// What the ASCII bytes of a block are for cased patterns.
struct AsciiCase {
  uint64_t ascii, upper, slash;
};

/// What bytes of a block are for patterns with segments: of ASCII those of no class, and the lead bytes with
/// which only Han begins.
struct ByteSegments {
  uint64_t ascii, other, han;
};

/// The bytes that follow those in `bits`: `bits` moved up by one, with `carry` from the block before.
inline uint64_t after(uint64_t bits, uint64_t carry) {
  return bits << 1 | carry;
}

/// The character outside ASCII that begins at `at`; 4 bytes must be readable. Bytes that are not UTF-8 give
/// some code point and no error: the caller checks texts.
inline uint32_t code_point(const char* at) {
  // The bits of the first 2, 3 or 4 bytes that make up the code point, with the first byte on top.
  static constexpr uint32_t kBits[16] = {0, 0, 0, 0, 0,          0,          0,          0,
                                         0, 0, 0, 0, 0x1F3F0000, 0x1F3F0000, 0x0F3F3F00, 0x073F3F3F};
  uint32_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return _pext_u32(__builtin_bswap32(bytes), kBits[(bytes >> 4) & 0xF]);
}

/// Reads a text block by block.
template <class Simd, BlockExtra kExtra = BlockExtra::kNone>
class BlockReader {
 public:
  BlockReader(const BlockClasses& classes, std::string_view utf8)
      : simd_(classes.flags().data()), of_kind_(classes.of_kind().data()), text_(utf8) {}

  std::string_view text() const { return text_; }

  /// The block at `at`. Blocks must be read in order: each takes over the last character of the one before.
  Block read(size_t at) {
    const size_t left = text_.size() - at;
    if (left >= kBlock + 3) [[likely]]
      return finish(text_.data() + at, ~uint64_t{0});
    char padded[kBlock + 4];
    Simd::copy_padded(text_.data() + at, left, padded);
    return finish(padded, left >= kBlock ? ~uint64_t{0} : (uint64_t{1} << left) - 1);
  }

  /// BlockFlags of the character at `at`; moves `at` past it.
  uint8_t next_class(const char*& at, const char* end) const {
    const auto lead = static_cast<uint8_t>(*at);
    size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (size > static_cast<size_t>(end - at)) size = static_cast<size_t>(end - at);
    char bytes[4] = {};
    std::memcpy(bytes, at, size);
    at += size;
    if (lead >= 0x80) return class_of(code_point(bytes));
    const uint8_t line_end = lead == '\n' || lead == '\r' ? kScanLineEnd : 0;
    return class_of(lead) | line_end;
  }

 private:
  uint8_t class_of(uint32_t code) const {
    if (code > 0x10FFFF) return 0;
    const uint8_t traits = kTraits[uint32_t{kTraitBlockOf[code >> 6]} << 6 | (code & 63)];
    if constexpr (kExtra == BlockExtra::kDigits)
      if ((traits & 0x80) != 0) return kScanNumber;  // CharTraits::is_digit
    return of_kind_[traits & 15];
  }

  Block finish(const char* at, uint64_t valid) {
    Block out = simd_.classify(at);
    Cases cases;        // of the characters that begin with a mixed lead
    Segments segments;  // of the same
    // All bytes of a character have the class of its first one; `last_` holds the class that the block before
    // ended with.
    if ((out.continuation | out.mixed) != 0) {
      for (uint64_t mixed = out.mixed; mixed != 0; mixed &= mixed - 1) {
        const int i = __builtin_ctzll(mixed);
        const uint32_t code = code_point(at + i);
        const uint64_t kind = class_of(code);
        out.letter |= (kind & kScanLetter) << i;
        out.number |= (kind & kScanNumber) / kScanNumber << i;
        out.space |= (kind & kScanSpace) / kScanSpace << i;
        if constexpr (kExtra == BlockExtra::kSegments) {
          segments.other |= (kind & kScanOther) / kScanOther << i;
          segments.han |= uint64_t{is_han_or_kana(code)} << i;
        }
        if constexpr (kExtra == BlockExtra::kCases) {
          cases.upper |= (kind & kScanUpper) / kScanUpper << i;
          cases.lower |= (kind & kScanLower) / kScanLower << i;
          cases.mark |= (kind & kScanMark) / kScanMark << i;
        }
      }
      out.letter = spread(out.letter | (last_.letter & out.continuation), out.continuation);
      out.number = spread(out.number | (last_.number & out.continuation), out.continuation);
      out.space = spread(out.space | (last_.space & out.continuation), out.continuation);
    }
    last_.letter = out.letter >> 63;
    last_.number = out.number >> 63;
    last_.space = out.space >> 63;
    if constexpr (kExtra == BlockExtra::kCases) tell_cases(out, cases, at, valid);
    if constexpr (kExtra == BlockExtra::kSegments) tell_segments(out, segments, at, valid);
    out.letter &= valid;
    out.number &= valid;
    out.space &= valid;
    out.line_end &= valid;
    out.continuation &= valid;
    out.valid = valid;
    return out;
  }

  struct Cases {
    uint64_t upper = 0, lower = 0, mark = 0;
  };
  void tell_cases(Block& out, const Cases& found, const char* at, uint64_t valid) {
    const AsciiCase plain = simd_.ascii_case(at);
    out.upper = (found.upper | plain.upper) & valid;
    out.mark = found.mark & valid;
    out.slash = plain.slash & valid;
    const uint64_t upper = spread(found.upper | (last_.upper & out.continuation), out.continuation);
    const uint64_t lower = spread(found.lower | (last_.lower & out.continuation), out.continuation);
    last_.upper = upper >> 63;
    last_.lower = lower >> 63;
    out.both = out.letter & ~(plain.ascii | upper | lower) & valid;
    out.lower = (lower | (out.letter & plain.ascii & ~plain.upper)) & valid;
  }

  struct Segments {
    uint64_t han = 0, other = 0;
  };
  void tell_segments(Block& out, const Segments& found, const char* at, uint64_t valid) {
    const ByteSegments bytes = simd_.segments(at);
    const uint64_t han = spread(found.han | bytes.han | (last_.han & out.continuation), out.continuation);
    const uint64_t other =
        spread(found.other | bytes.other | (last_.other & out.continuation), out.continuation);
    last_.han = han >> 63;
    last_.other = other >> 63;
    out.han = han & valid;
    out.other = other & valid;
    out.ascii = bytes.ascii & valid;
  }
  /// [\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]
  static bool is_han_or_kana(uint32_t code) { return code - 0x4E00 <= 0x51A5 || code - 0x3040 <= 0xBF; }

  static uint64_t spread(uint64_t bits, uint64_t continuation) {
    for (int i = 0; i < 3; ++i) bits |= (bits << 1) & continuation;
    return bits;
  }

  struct Last {
    uint64_t letter = 0, number = 0, space = 0, upper = 0, lower = 0, han = 0, other = 0;  // 0 or 1
  };
  Simd simd_;
  const uint8_t* of_kind_;
  std::string_view text_;
  Last last_;
};

/// The first byte of each space that is followed by a character other than a space. `ends`: characters that
/// end a text for the pattern, as if nothing followed, in this block and the next.
inline uint64_t before_no_space(const Block& block, const Block& next, uint64_t ends = 0,
                                uint64_t next_ends = 0) {
  const auto down = [](uint64_t here, uint64_t then, int n) { return here >> n | then << (64 - n); };
  const uint64_t here = block.valid & ~block.space & ~ends, then = next.valid & ~next.space & ~next_ends;
  uint64_t found = down(here, then, 1);
  const uint64_t tail = block.space & block.continuation, next_tail = next.space & next.continuation;
  if (tail != 0 || (block.space >> 63 != 0 && (next_tail & 1) != 0)) {
    const uint64_t second = down(tail, next_tail, 1);
    found |= second & (down(here, then, 2) | (down(tail, next_tail, 2) & down(here, then, 3)));
  }
  return found;
}

/// Writes where the pretokens of the text of `reader` end, as FindPretokens does; `scan.find(block, next,
/// at)` finds where they begin. If the first pretoken is too long, calls `endless` instead.
template <class Simd, BlockExtra kExtra, class Scan>
size_t find_starts(BlockReader<Simd, kExtra>& reader, Scan& scan, std::span<uint32_t> ends,
                   size_t (*endless)(std::string_view utf8, std::span<uint32_t> ends)) {
  const std::string_view utf8 = reader.text();
  // The loop stops beyond this many ends, so that there is always room for the starts of two more blocks.
  const size_t enough = ends.size() - 2 * kBlock;
  size_t count = 0;
  Block block = reader.read(0);
  uint64_t kept = ~uint64_t{1};  // the start of the text is not the end of a pretoken
  for (size_t at = 0;; at += kBlock, kept = ~uint64_t{0}) {
    const bool last = utf8.size() - at <= kBlock;
    const Block next = last ? Block{} : reader.read(at + kBlock);
    const uint64_t starts = scan.find(block, next, at) & kept;
    Simd::write(starts, static_cast<uint32_t>(at), ends.data() + count);
    count += static_cast<size_t>(__builtin_popcountll(starts));
    if (last) {
      ends[count] = static_cast<uint32_t>(utf8.size());
      return count + 1;
    }
    if (count > enough) return count;
    if (at >= UINT32_MAX - 2 * kBlock) return count > 0 ? count : endless(utf8, ends);
    block = next;
  }
}

}  // namespace
}  // namespace megalith
