#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "libcore/text/pretokenize/split_pattern.h"

namespace megalith {

/// Goes over the places of a text where a match of one pattern may begin.
class MatchBegins {
 public:
  explicit MatchBegins(const SplitPattern& pattern);
  bool may_begin(const char* at, const char* end) const;
  /// The first such place from `at` on, or the text's end.
  const char* next(const char* at, const Window& text) const;
  /// The place after the character (or with of_bytes the byte) at `at`.
  const char* after(const char* at) const;

 private:
  const SplitPattern& pattern_;
  std::array<bool, 256> ascii_;  // others: true
};

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
  };
  std::shared_ptr<const Tables> tables_;
};

}  // namespace megalith
