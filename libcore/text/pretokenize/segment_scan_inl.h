#pragma once

#include "libcore/text/pretokenize/run_starts_inl.h"
#include "libcore/text/pretokenize/word_scan.h"

/// The scan for DeepSeek-V3's three patterns (see block_scan_inl.h).
namespace megalith {
namespace {

/// Finds where pretokens begin, one block after the other. The first two patterns divide a text into
/// segments: numbers, runs of Han and Kana, and the rest. The third finds nothing in numbers; in the others,
/// and only within a segment,
/// - a word, [\p{L}\p{M}]+, takes along a gap or a character of no class before it;
/// - an ASCII sign with which a match begins is one pretoken with the letters of ASCII after it: a letter
///   beyond ASCII after these begins a word;
/// - signs begin at the first of a run, unless a U+0020 precedes it; line ends after it belong to it;
/// - the last of several spaces is apart where something of the segment follows;
/// - characters of no class between all these are one pretoken.
template <class Simd>
class SegmentStarts {
 public:
  using Reader = BlockReader<Simd, BlockExtra::kSegments>;
  explicit SegmentStarts(const Reader& reader) : text_(reader.text().data()), spaces_(reader) {}

  /// The starts in `block`, which is at `at` in the text and before `next`.
  uint64_t find(const Block& block, const Block& next, size_t at) {
    const uint64_t borders = (block.han ^ after(block.han, han_)) & ~block.continuation;
    const uint64_t sign = block.sign() & ~block.other;
    const uint64_t tail = find_tail(block.line_end, sign & ~block.han);
    const uint64_t sign_starts = sign & ((~after(sign, sign_) & ~after(block.blank, blank_)) | borders);
    const uint64_t last = before_no_space(block, next, block.number | block.han, next.number | next.han);
    uint64_t starts = borders | sign_starts | letter_starts(block, sign_starts & block.ascii) |
                      numbers_.find(block) | spaces_.find(block, tail, last, next, at);
    if (block.other != 0) [[unlikely]]
      starts |= other_starts(block, next, at);
    han_ = block.han >> 63;
    sign_ = sign >> 63;
    blank_ = block.blank >> 63;
    other_ = block.other >> 63;
    return starts & block.valid;
  }

 private:
  /// The line ends that belong to the signs before them. `sign`: those that are no Han or Kana.
  uint64_t find_tail(uint64_t line_end, uint64_t sign) {
    const uint64_t first = line_end & (after(sign, plain_sign_) | tail_);
    const uint64_t tail = line_end & ~(line_end + first);  // as for letters below
    plain_sign_ = sign >> 63;
    tail_ = tail >> 63;
    return tail;
  }

  /// `signs`: those of ASCII with which a match begins.
  uint64_t letter_starts(const Block& block, uint64_t signs) {
    const uint64_t ascii = block.letter & block.ascii, joins = block.letter | block.gap() | block.other;
    const uint64_t led = ascii & after(signs, lead_);
    // Adding the first bit of a run clears the run: the carry passes through it.
    const uint64_t with_sign = ascii & ~(ascii + (led | (ascii & with_sign_)));
    const uint64_t starts =
        block.letter & ((~after(joins, joins_) & ~led) | (~block.ascii & after(with_sign, with_sign_)));
    lead_ = signs >> 63;
    with_sign_ = with_sign >> 63;
    joins_ = joins >> 63;
    return starts;
  }

  /// Characters of no class begin a pretoken as the first of a run, and before a word of their segment.
  uint64_t other_starts(const Block& block, const Block& next, size_t at) const {
    const uint64_t first = block.other & ~block.continuation;
    uint64_t starts = first & ~after(block.other, other_);
    for (uint64_t left = first; left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      const auto lead = static_cast<uint8_t>(text_[at + static_cast<size_t>(i)]);
      const int then = i + (lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4);
      const Block& there = then < 64 ? block : next;
      const bool is_letter = (there.letter >> (then % 64) & 1) != 0;
      const bool is_han = (there.han >> (then % 64) & 1) != 0;
      if (is_letter && is_han == ((block.han >> i & 1) != 0)) starts |= uint64_t{1} << i;
    }
    return starts;
  }

  const char* text_;
  NumberStarts<3> numbers_;
  SpaceStarts<Reader> spaces_;
  // 0 or 1: what the block before ended with.
  uint64_t han_ = 0, sign_ = 0, plain_sign_ = 0, blank_ = 0, other_ = 0, tail_ = 0;
  uint64_t lead_ = 0, with_sign_ = 0, joins_ = 0;
};

template <class Simd>
size_t find_segments(std::string_view utf8, std::span<uint32_t> ends) {
  BlockReader<Simd, BlockExtra::kSegments> reader(word_classes(WordPattern::kDeepSeek3), utf8);
  SegmentStarts<Simd> scan(reader);
  return find_starts(reader, scan, ends, refuse_endless_piece);
}

}  // namespace
}  // namespace megalith
