#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/patterns/char_ranges.h"

namespace megalith {

/// A part of a regular expression.
struct PatternNode {
  enum class Kind : uint8_t {
    kSequence,  // the children, one after the other; without any, nothing
    kChoice,    // the first of the children that matches
    kSet,       // one character of `set`
    kNext,      // nothing, if a character of `set` follows, or if the text ends and `at_end` is set
    kRepeat,    // the only child, `min` to `max` times
  };
  enum class Greed : uint8_t { kGreedy, kLazy, kPossessive };
  static constexpr size_t kUnbounded = SIZE_MAX;

  Kind kind = Kind::kSequence;
  CharRanges set = {};
  bool at_end = false;
  size_t min = 0, max = 0;
  Greed greed = Greed::kGreedy;
  std::vector<PatternNode> children = {};
};

/// What a pattern has that is not supported.
struct UnsupportedPattern {
  std::string what;
};

/// Parses a regular expression as Oniguruma does with Ruby's syntax, which Hugging Face tokenizers use:
/// sets with ranges, \p{...}, [...] in them and &&; groups, (?i:...), |; greedy, lazy and possessive
/// quantifiers; lookahead at one character; $. Throws UnsupportedPattern for everything else.
PatternNode parse_pattern(std::string_view regex);

}  // namespace megalith
