#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/text/pretokenize/split_pattern.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {

/// Goes over the places of a text where a match of one pattern may begin. Its functions are called for each
/// character, so they are in the header: what a shared library exports is not inlined.
class MatchBegins {
 public:
  explicit MatchBegins(const SplitPattern& pattern);
  bool may_begin(const char* at, const char* end) const {
    const auto byte = static_cast<uint8_t>(*at);
    if (byte < 0x80 || !pattern_.begins) return ascii_[byte];
    return pattern_.begins(code_point_at({at, end}).value);
  }
  /// The first such place from `at` on, or the text's end.
  const char* next(const char* at, const Window& text) const {
    if (pattern_.skip) return pattern_.skip(at, text);
    while (at < text.end() && !may_begin(at, text.end())) at = after(at);
    return at;
  }
  /// The place after the character (or with of_bytes the byte) at `at`.
  const char* after(const char* at) const { return at + (pattern_.of_bytes ? 1 : character_bytes(*at)); }

 private:
  const SplitPattern& pattern_;
  std::array<bool, 256> ascii_;  // others: true
};

/// Calls take(begin, end) for each match of a pattern in a text, in order.
template <class Take>
void each_match(const SplitPattern& pattern, const MatchBegins& begins, std::string_view text,
                const Take& take) {
  if (pattern.find_all) return pattern.find_all(text, take);
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const Window window(end, false);
  for (const char* at = begin; (at = begins.next(at, window)) < end;) {
    const char* const stop = pattern.match(at, window);
    if (stop == at) {
      at = begins.after(at);
      continue;
    }
    take(static_cast<size_t>(at - begin), static_cast<size_t>(stop - begin));
    at = stop;
  }
}

/// Patterns that are applied one after the other, as a FindPretokens: each divides the pieces that those
/// before it left into its matches and the text between them. On a short piece only those patterns are tried
/// that may begin with one of its bytes; most words have none for most patterns.
class PatternSequence {
 public:
  explicit PatternSequence(std::vector<SplitPattern> patterns);
  size_t operator()(std::string_view utf8, std::span<uint32_t> ends) const;

 private:
  class Cutting;
  struct Tables {
    explicit Tables(std::vector<SplitPattern> given);
    std::vector<SplitPattern> patterns;
    std::vector<MatchBegins> begins;       // of each pattern; refers to it
    std::array<uint32_t, 256> tried_at{};  // for each byte a bit for each pattern that may begin with it
    uint32_t always = UINT32_MAX;          // a bit for each pattern that may begin with every byte
  };
  std::shared_ptr<const Tables> tables_;
};

}  // namespace megalith
