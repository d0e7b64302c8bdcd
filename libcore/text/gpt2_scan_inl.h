#pragma once

#include <cstring>

#include <immintrin.h>

#include "libcore/text/gpt2_scan.h"

/// The scan for GPT-2's pattern, for the files that are compiled for one instruction set; needs BMI2. It
/// calls no inline function from elsewhere that the compiler might not inline: the linker keeps one copy of
/// those, and it must not be one that only some processors run.
namespace megalith {
namespace {

constexpr size_t kBlock = 64;

/// One bit for each byte of a block: the class of the character that it belongs to, and more.
struct Block {
  uint64_t letter = 0, number = 0, space = 0;
  uint64_t blank = 0;         // U+0020
  uint64_t apostrophe = 0;    // U+0027
  uint64_t continuation = 0;  // not the first byte of its character
  uint64_t valid = 0;         // the text reaches so far
  uint64_t no_space() const { return valid & ~space; }
};

/// What an instruction set finds in 64 bytes: the class of each byte by byte_flags().
struct RawBlock {
  uint64_t letter, number, space, blank, apostrophe;
  uint64_t continuation, mixed;  // 0 when all are ASCII
};

/// A character outside ASCII that begins at `at`, of which 4 bytes can be read. Bytes that are no UTF-8 give
/// some code point.
inline uint32_t decode(const char* at) {
  // Bits of the first 2, 3 or 4 bytes that make the code point, the first byte on top.
  static constexpr std::array<uint32_t, 16> kBits = {
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x1F3F0000, 0x1F3F0000, 0x0F3F3F00, 0x073F3F3F};
  uint32_t bytes;
  std::memcpy(&bytes, at, sizeof bytes);
  return _pext_u32(__builtin_bswap32(bytes), kBits[(bytes >> 4) & 0xF]);
}

/// Reads a text block by block.
template <class Simd>
class BlockReader {
 public:
  explicit BlockReader(std::string_view utf8) : text_(utf8) {}

  /// The block at `at`, which is less than the text's size. To be called for one block after the other.
  Block read(size_t at) {
    const size_t left = text_.size() - at;
    if (left >= kBlock + 3) [[likely]]
      return finish(text_.data() + at, ~uint64_t{0});
    char padded[kBlock + 4] = {};
    std::memcpy(padded, text_.data() + at, left);
    return finish(padded, left >= kBlock ? ~uint64_t{0} : (uint64_t{1} << left) - 1);
  }

 private:
  Block finish(const char* at, uint64_t valid) {
    RawBlock raw = simd_.classify(at);
    // The bytes of a character have the class of its first one; `last_` holds that of the block before.
    if ((raw.continuation | raw.mixed) != 0) {
      for (uint64_t mixed = raw.mixed; mixed != 0; mixed &= mixed - 1) {
        const int i = __builtin_ctzll(mixed);
        const auto kind = static_cast<uint64_t>(char_class(decode(at + i)));
        raw.letter |= uint64_t{kind == static_cast<uint64_t>(CharClass::kLetter)} << i;
        raw.number |= uint64_t{kind == static_cast<uint64_t>(CharClass::kNumber)} << i;
        raw.space |= uint64_t{kind == static_cast<uint64_t>(CharClass::kSpace)} << i;
      }
      raw.letter = spread(raw.letter | (last_.letter & raw.continuation), raw.continuation);
      raw.number = spread(raw.number | (last_.number & raw.continuation), raw.continuation);
      raw.space = spread(raw.space | (last_.space & raw.continuation), raw.continuation);
    }
    last_ = {raw.letter >> 63, raw.number >> 63, raw.space >> 63};
    return {raw.letter & valid,
            raw.number & valid,
            raw.space & valid,
            raw.blank & valid,
            raw.apostrophe & valid,
            raw.continuation & valid,
            valid};
  }

  static uint64_t spread(uint64_t bits, uint64_t continuation) {
    for (int i = 0; i < 3; ++i) bits |= (bits << 1) & continuation;
    return bits;
  }

  struct Last {
    uint64_t letter = 0, number = 0, space = 0;  // 0 or 1
  };
  std::string_view text_;
  Simd simd_;
  Last last_;
};

/// Bits for a block and the one behind it.
struct TwoBlocks {
  uint64_t here = 0, next = 0;
  void set(int i) { (i < 64 ? here : next) |= uint64_t{1} << (i % 64); }
};

/// Finds where pretokens begin in one block after the other.
class Gpt2Starts {
 public:
  explicit Gpt2Starts(std::string_view utf8) : text_(utf8.data()), end_(text_ + utf8.size()) {}

  /// In `block`, which lies at `at` in the text; `next` is the block behind it.
  uint64_t find(const Block& block, const Block& next, size_t at) {
    const uint64_t other = block.valid & ~(block.letter | block.number | block.space);
    const uint64_t same = (block.letter & (block.letter << 1 | letter_)) |
                          (block.number & (block.number << 1 | number_)) | (other & (other << 1 | other_));
    // A word, or a U+0020 and a word.
    uint64_t starts = block.no_space() & ~same & ~(block.blank << 1 | blank_);
    // A run of spaces; the last one apart from the others where something follows.
    const uint64_t ends_run = before_no_space(block, next);
    starts |= block.space & ~block.continuation & (~(block.space << 1 | space_) | ends_run);
    starts = with_contractions(starts, block.apostrophe, at) & block.valid;
    letter_ = block.letter >> 63;
    number_ = block.number >> 63;
    other_ = other >> 63;
    space_ = block.space >> 63;
    blank_ = block.blank >> 63;
    return starts;
  }

 private:
  /// First bytes of spaces that a character other than a space follows.
  static uint64_t before_no_space(const Block& block, const Block& next) {
    const auto down = [](uint64_t here, uint64_t then, int n) { return here >> n | then << (64 - n); };
    const uint64_t here = block.no_space(), then = next.no_space();
    uint64_t found = down(here, then, 1);
    if ((block.space & block.continuation) != 0 || (block.space >> 63 != 0 && (next.continuation & 1) != 0)) {
      const uint64_t tail = block.space & block.continuation, next_tail = next.space & next.continuation;
      const uint64_t second = down(tail, next_tail, 1);
      found |= second & (down(here, then, 2) | (down(tail, next_tail, 2) & down(here, then, 3)));
    }
    return found;
  }

  /// Contractions ('s, 'll) are pretokens of their own where one begins with an apostrophe.
  uint64_t with_contractions(uint64_t starts, uint64_t apostrophes, size_t at) {
    TwoBlocks inside{.next = 0}, behind{.next = 0};
    inside.here = inside_;
    behind.here = behind_;
    for (uint64_t left = starts & apostrophes; left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      const int bytes = contraction(text_ + at + i);
      if (bytes == 0) continue;
      inside.set(i + 1);
      behind.set(i + bytes);
    }
    inside_ = inside.next;
    behind_ = behind.next;
    return (starts & ~inside.here) | behind.here;
  }

  /// Bytes of the contraction at `at`, or 0.
  int contraction(const char* at) const {
    const char first = end_ - at > 1 ? at[1] : '\0';
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const char second = end_ - at > 2 ? at[2] : '\0';
    return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
  }

  const char *text_, *end_;
  // Of the last byte of the block before: 0 or 1.
  uint64_t letter_ = 0, number_ = 0, other_ = 0, space_ = 0, blank_ = 0;
  uint64_t inside_ = 0, behind_ = 0;  // bits of contractions that began in the block before
};

template <class Simd>
size_t find_gpt2(std::string_view utf8, std::span<uint32_t> ends) {
  // Two blocks' starts have room behind the greatest count at which the loop goes on.
  const size_t enough = ends.size() - 2 * kBlock;
  BlockReader<Simd> reader(utf8);
  Gpt2Starts scan(utf8);
  size_t count = 0;
  Block block = reader.read(0);
  uint64_t kept = ~uint64_t{1};  // the text's beginning ends nothing
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
    if (at >= UINT32_MAX - 2 * kBlock) return count > 0 ? count : find_gpt2_generic(utf8, ends);
    block = next;
  }
}

}  // namespace
}  // namespace megalith
