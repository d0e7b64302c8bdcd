#pragma once

#include "libcore/text/pretokenize/run_starts_inl.h"
#include "libcore/text/pretokenize/segment_scan_inl.h"
#include "libcore/text/pretokenize/word_scan.h"

/// The scan for the patterns of word_scan.h (see block_scan_inl.h).
namespace megalith {
namespace {

struct WordRules {
  int digits;  // most digits of one number: 1 or 3
  bool contractions;
  bool cased = false;  // cased patterns look for contractions after words
};

/// Finds where pretokens begin, one block after the other. Most pretokens begin where the characters nearby
/// say so:
/// - letters: at the first of a run, unless a gap or a single sign before it belongs to the word;
/// - a number: at the first of a run, and after each `digits` of them;
/// - signs: at the first of a run, unless a U+0020 precedes it; line ends after it (and, in a cased pattern,
///   slashes among them) belong to it;
/// - spaces: at the first of a run (unless it is such a line end); after the run's last line end; and at the
///   last one, if it is no line end and a character other than a space follows.
/// In a cased pattern a word also begins at upper case after lower case. Two cases depend on more than the
/// character before: upper case after a letter without case, and a mark after a sign (which may take the
/// mark). The definition, first_pretoken_, decides these (see settle()).
template <class Simd, const WordRules& kRules>
class WordStarts {
 public:
  static constexpr BlockExtra kExtra = kRules.cased ? BlockExtra::kCases : BlockExtra::kNone;
  using Reader = BlockReader<Simd, kExtra>;
  WordStarts(const Reader& reader, FirstPretoken first_pretoken)
      : text_(reader.text().data()),
        end_(text_ + reader.text().size()),
        spaces_(reader),
        first_pretoken_(first_pretoken) {}

  /// The starts in `block`, which is at `at` in the text and before `next`.
  uint64_t find(const Block& block, const Block& next, size_t at) {
    const uint64_t tail = find_tail(block), sign = block.sign() & ~tail, gap = block.gap();
    const uint64_t sign_starts = sign & ~after(sign, sign_) & ~after(block.blank, blank_);
    const uint64_t led = leads(sign_starts, block.continuation);
    uint64_t starts = sign_starts | (block.letter & ~after(block.letter | gap, letter_or_gap_) & ~led) |
                      numbers_.find(block) |
                      spaces_.find(block, tail, before_no_space(block, next), next, at);
    if constexpr (kRules.cased) {
      const uint64_t apostrophes = block.apostrophe & after(block.letter, letter_);
      const uint64_t doubtful = (block.upper & after(block.both, both_)) | (block.mark & after(sign, sign_));
      starts |= block.upper & after(block.lower, lower_);
      starts = settle(starts, doubtful, kRules.contractions ? apostrophes : 0, at);
      letter_ = block.letter >> 63;
      lower_ = block.lower >> 63;
      both_ = block.both >> 63;
    } else if (kRules.contractions) {
      starts = with_contractions(starts, starts & block.apostrophe, at);
    }
    sign_ = sign >> 63;
    tail_ = tail >> 63;
    blank_ = block.blank >> 63;
    letter_or_gap_ = (block.letter | gap) >> 63;
    return starts & block.valid;
  }

 private:
  /// Marks the byte after each character that begins at `starts`.
  uint64_t leads(uint64_t starts, uint64_t continuation) {
    uint64_t bytes = starts | (lead_ & continuation);
    if (continuation != 0)
      for (int i = 0; i < 3; ++i) bytes |= (bytes << 1) & continuation;
    const uint64_t out = after(bytes, lead_);
    lead_ = bytes >> 63;
    return out;
  }

  /// The line ends (in a cased pattern also the slashes) that belong to the signs before them.
  uint64_t find_tail(const Block& block) const {
    const uint64_t joins = block.line_end | (kRules.cased ? block.slash : 0);
    uint64_t first = (block.line_end & after(block.sign(), sign_)) | (joins & tail_);
    // Adding the first bit of a run clears the run: the carry passes through it.
    if constexpr (!kRules.cased) return joins & ~(joins + first);
    uint64_t tail = 0;
    /// One at a time: a slash inside a tail does not begin another tail.
    while (first != 0) {
      tail |= joins & ~(joins + (first & (~first + 1)));
      first &= ~tail;
    }
    return tail;
  }

  /// Returns the final starts in the block at `at`. Asks the definition about those in `doubtful`, which
  /// depend on more than the character before. Joins contractions to the words that end before `apostrophes`.
  uint64_t settle(uint64_t starts, uint64_t doubtful, uint64_t apostrophes, size_t at) {
    if (settled_ >= at && at > 0) starts = pass(starts, 0, at, at);
    for (uint64_t left = doubtful | apostrophes; left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      const size_t place = at + static_cast<size_t>(i);
      const uint64_t bit = uint64_t{1} << i;
      if (place <= settled_) continue;
      if ((apostrophes & bit) != 0) {
        const int bytes = contraction(text_ + place);
        if (bytes == 0) continue;
        settled_ = place + static_cast<size_t>(bytes);
        starts = pass(starts, bit - 1, at, place);
      } else {
        const uint64_t before = starts & (bit - 1);
        const int last = before != 0 ? 63 - __builtin_clzll(before) : 0;
        settled_ = before != 0 ? at + static_cast<size_t>(last) : last_start_;
        do settled_ += pretoken_size(settled_);
        while (settled_ < at);
        starts = pass(starts, before != 0 ? (uint64_t{2} << last) - 1 : 0, at, place);
      }
    }
    if (starts != 0) last_start_ = at + static_cast<size_t>(63 - __builtin_clzll(starts));
    return starts;
  }

  /// To be called when a pretoken is known to end at settled_: drops the starts before it in the block at
  /// `at`, except those in `kept`. If a line end or a slash precedes settled_, or settled_ is before `place`,
  /// also asks the definition for the next pretoken.
  uint64_t pass(uint64_t starts, uint64_t kept, size_t at, size_t place) {
    while (settled_ - at < kBlock) {
      const uint64_t bit = uint64_t{1} << (settled_ - at);
      starts = (starts & (kept | ~(bit - 1))) | bit;
      kept = (starts & (bit - 1)) | bit;
      const char before = text_[settled_ - 1];
      const bool sure = settled_ >= place && before != '/' && before != '\n' && before != '\r';
      if (sure || text_ + settled_ >= end_) return starts;
      settled_ += pretoken_size(settled_);
    }
    return starts & kept;
  }

  size_t pretoken_size(size_t place) const {
    const size_t size = first_pretoken_({text_ + place, static_cast<size_t>(end_ - text_) - place});
    return size > 0 ? size : 1;  // for bytes that are not UTF-8
  }

  /// Adds the starts after contractions ('s, 'll): another pretoken begins there.
  uint64_t with_contractions(uint64_t starts, uint64_t apostrophes, size_t at) {
    uint64_t here = contraction_end_;
    contraction_end_ = 0;
    for (uint64_t left = apostrophes; left != 0; left &= left - 1) {
      const int i = __builtin_ctzll(left);
      const int bytes = contraction(text_ + at + i);
      if (bytes == 0) continue;
      (i + bytes < 64 ? here : contraction_end_) |= uint64_t{1} << ((i + bytes) % 64);
    }
    return starts | here;
  }

  /// Length of the contraction at `at`, or 0; (?i:s) includes U+017F.
  int contraction(const char* at) const {
    const char first = end_ - at > 1 ? lower(at[1]) : '\0';
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    const char second = end_ - at > 2 ? lower(at[2]) : '\0';
    const bool is = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l') ||
                    (first == '\xC5' && second == '\xBF');
    return is ? 3 : 0;
  }
  static char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

  const char *text_, *end_;
  NumberStarts<kRules.digits> numbers_;
  SpaceStarts<Reader> spaces_;
  FirstPretoken first_pretoken_;
  // 0 or 1: what the block before ended with.
  uint64_t sign_ = 0, blank_ = 0, letter_or_gap_ = 0, lead_ = 0, tail_ = 0;
  uint64_t letter_ = 0, lower_ = 0, both_ = 0;
  size_t settled_ = 0;            // a pretoken begins here; starts before it are final
  size_t last_start_ = 0;         // the last start in the blocks before
  uint64_t contraction_end_ = 0;  // where contractions that began in the block before end, as bits
};

inline constexpr WordRules kThreeDigits = {3, true}, kOneDigit = {1, true}, kNoContractions = {1, false};
inline constexpr WordRules kCasedO200k = {3, true, true}, kCasedTekken = {1, false, true};

template <class Simd, const WordRules& kRules, WordPattern kPattern>
size_t find_words_by(std::string_view utf8, std::span<uint32_t> ends) {
  typename WordStarts<Simd, kRules>::Reader reader(word_classes(kPattern), utf8);
  WordStarts<Simd, kRules> scan(reader, kRules.cased ? first_cased_pretoken(kPattern) : nullptr);
  return find_starts(reader, scan, ends, refuse_endless_piece);
}

template <class Simd>
FindWords choose_words(WordPattern pattern) {
  switch (pattern) {
    case WordPattern::kLlama3:
      return find_words_by<Simd, kThreeDigits, WordPattern::kLlama3>;
    case WordPattern::kQwen2:
      return find_words_by<Simd, kOneDigit, WordPattern::kQwen2>;
    case WordPattern::kQwen35:
      return find_words_by<Simd, kOneDigit, WordPattern::kQwen35>;
    case WordPattern::kNemotron:
      return find_words_by<Simd, kNoContractions, WordPattern::kNemotron>;
    case WordPattern::kO200k:
      return find_words_by<Simd, kCasedO200k, WordPattern::kO200k>;
    case WordPattern::kTekken:
      return find_words_by<Simd, kCasedTekken, WordPattern::kTekken>;
    case WordPattern::kDeepSeek3:
      return find_segments<Simd>;
  }
  return nullptr;
}

}  // namespace
}  // namespace megalith
