#pragma once

#include "libcore/text/pretokenize/block_scan_inl.h"
#include "libcore/text/pretokenize/gpt2_scan.h"

/// The scan for GPT-2's pattern (see block_scan_inl.h).
namespace megalith {
namespace {

/// Bits for a block and the one after it.
struct TwoBlocks {
  uint64_t here = 0, next = 0;
  void set(int i) { (i < 64 ? here : next) |= uint64_t{1} << (i % 64); }
};

/// Finds where pretokens begin, one block after the other. `kDigits`: each number is cut out first, and the
/// pattern applied to what is between them: nothing takes a number along, and before one a text ends.
template <bool kDigits>
class Gpt2Starts {
 public:
  explicit Gpt2Starts(std::string_view utf8) : text_(utf8.data()), end_(text_ + utf8.size()) {}

  /// The starts in `block`, which is at `at` in the text and before `next`.
  uint64_t find(const Block& block, const Block& next, size_t at) {
    const uint64_t other = block.sign();
    const uint64_t same = (block.letter & (block.letter << 1 | letter_)) |
                          (block.number & (block.number << 1 | number_)) | (other & (other << 1 | other_));
    // Words; a U+0020 before a word begins its pretoken.
    uint64_t starts = block.valid & ~block.space & ~same & ~(block.blank << 1 | blank_);
    // Runs of spaces. The last space of a run is separate if something follows: \s+(?!\S) leaves it.
    const uint64_t ends_run =
        kDigits ? before_no_space(block, next, block.number, next.number) : before_no_space(block, next);
    if constexpr (kDigits) starts |= block.number & ~block.continuation;
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
  /// If a pretoken begins with the apostrophe of a contraction ('s, 'll), the contraction is a pretoken of
  /// its own. Adds the start after it.
  uint64_t with_contractions(uint64_t starts, uint64_t apostrophes, size_t at) {
    TwoBlocks inside{.next = 0}, after{.next = 0};
    inside.here = inside_;
    after.here = after_;
    for (uint64_t left = starts & apostrophes; left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      const int bytes = contraction(text_ + at + i);
      if (bytes == 0) continue;
      inside.set(i + 1);
      after.set(i + bytes);
    }
    inside_ = inside.next;
    after_ = after.next;
    return (starts & ~inside.here) | after.here;
  }

  /// Length of the contraction at `at`, or 0.
  int contraction(const char* at) const {
    const char first = end_ - at > 1 ? at[1] : '\0';
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const char second = end_ - at > 2 ? at[2] : '\0';
    return ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ? 3 : 0;
  }

  const char *text_, *end_;
  // 0 or 1: what the block before ended with.
  uint64_t letter_ = 0, number_ = 0, other_ = 0, space_ = 0, blank_ = 0;
  uint64_t inside_ = 0, after_ = 0;  // bits of the contractions that began in the block before
};

template <class Simd>
size_t find_gpt2(std::string_view utf8, std::span<uint32_t> ends) {
  BlockReader<Simd> reader(plain_classes(), utf8);
  Gpt2Starts<false> scan(utf8);
  return find_starts(reader, scan, ends, find_gpt2_generic);
}

template <class Simd>
size_t find_gpt2_digits(std::string_view utf8, std::span<uint32_t> ends) {
  BlockReader<Simd, BlockExtra::kDigits> reader(plain_classes(), utf8);
  Gpt2Starts<true> scan(utf8);
  return find_starts(reader, scan, ends, refuse_endless_piece);
}

}  // namespace
}  // namespace megalith
