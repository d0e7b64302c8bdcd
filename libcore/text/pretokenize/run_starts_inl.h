#pragma once

#include "libcore/text/pretokenize/block_scan_inl.h"

/// Where pretokens begin in runs of numbers and of spaces, for several patterns (see block_scan_inl.h).
namespace megalith {
namespace {

/// Numbers of at most `kDigits` digits, 1 or 3: \p{N}{1,3}.
template <int kDigits>
class NumberStarts {
 public:
  uint64_t find(const Block& block) {
    const uint64_t numbers = block.number, first = numbers & ~block.continuation;
    if (kDigits == 1) return first;
    const uint64_t runs = numbers & ~after(numbers, number_);
    const uint64_t before = number_;
    number_ = numbers >> 63;
    // Most numbers are short and lie within one block.
    if (((numbers & block.continuation) | (numbers & numbers << 1 & numbers << 2 & numbers << 3) |
         (numbers & 1 & before)) == 0) [[likely]] {
      if (number_ != 0) digits_ = __builtin_clzll(~numbers) % kDigits;
      return runs;
    }
    uint64_t starts = 0;
    for (uint64_t left = first; left != 0; left &= left - 1) {
      const uint64_t bit = left & (~left + 1);
      if ((runs & bit) != 0) digits_ = 0;
      if (digits_ == 0) starts |= bit;
      digits_ = digits_ + 1 == kDigits ? 0 : digits_ + 1;
    }
    return starts;
  }

 private:
  uint64_t number_ = 0;  // 0 or 1: what the block before ended with
  int digits_ = 0;       // digits so far of the number at its end
};

/// \s*[\r\n]+|\s+(?!\S)|\s+
template <class Reader>
class SpaceStarts {
 public:
  explicit SpaceStarts(const Reader& reader)
      : reader_(reader), text_(reader.text().data()), end_(text_ + reader.text().size()) {}

  /// `tail`: line ends that belong to what is before them. `last`: the spaces before which \s+(?!\S) ends,
  /// since something else follows them.
  uint64_t find(const Block& block, uint64_t tail, uint64_t last, const Block& next, size_t at) {
    const uint64_t gap = block.gap();
    const uint64_t spaces = block.space & ~tail, line_end = block.line_end & ~tail;
    uint64_t starts = spaces & ~block.continuation & ~after(spaces, space_);
    starts |= gap & ~block.continuation & last;
    const uint64_t gap_runs = gap & ~after(gap, gap_), after_line = gap_runs & after(line_end, line_end_);
    if (after_line != 0) starts |= after_line & ~before_line_end(block, next, gap_runs, at);
    space_ = spaces >> 63;
    gap_ = gap >> 63;
    line_end_ = line_end >> 63;
    return starts;
  }

 private:
  /// The starts of the gaps that a line end follows. `runs`: where the gaps begin, all in this block.
  uint64_t before_line_end(const Block& block, const Block& next, uint64_t runs, size_t at) const {
    const uint64_t gap = block.gap();
    uint64_t ends = ~gap & after(gap, gap_);  // what follows each gap
    if (gap_ != 0) ends &= ends - 1;          // the first belongs to a gap that began in an earlier block
    uint64_t found = _pdep_u64(_pext_u64(block.line_end, ends), runs);
    if (gap >> 63 != 0) {
      const uint64_t last = uint64_t{1} << (63 - __builtin_clzll(runs));
      if (line_end_follows(next, at + kBlock)) found |= last;
    }
    return found;
  }

  /// Whether the gap that reaches to `at`, where `next` begins, is followed by a line end.
  bool line_end_follows(const Block& next, size_t at) const {
    if (~next.gap() != 0) {
      const uint64_t end = ~next.gap() & (next.gap() + 1);  // the lowest bit that is not a gap
      return (next.line_end & end) != 0;
    }
    const char* place = text_ + at + kBlock;
    while (place < end_ && (static_cast<uint8_t>(*place) & 0xC0) == 0x80) ++place;
    uint8_t kind = kScanSpace;
    while (place < end_ && kind == kScanSpace) kind = reader_.next_class(place, end_);
    return (kind & kScanLineEnd) != 0;
  }

  const Reader& reader_;
  const char *text_, *end_;
  uint64_t space_ = 0, gap_ = 0, line_end_ = 0;  // 0 or 1: what the block before ended with
};

}  // namespace
}  // namespace megalith
