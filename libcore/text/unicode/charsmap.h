#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// SentencePiece's precompiled charsmap: texts and what they become. It comes from a file, so each step is
/// checked. Const and thread-safe.
class Charsmap {
 public:
  Charsmap() = default;  // has no rules
  /// `map`: bytes as in the file; none: there are no rules. Throws kData, beginning with `where`, if they are
  /// damaged.
  Charsmap(std::string_view map, const std::string& where);

  bool empty() const { return trie_.empty(); }
  struct Match {
    std::string_view text;  // what the first `bytes` bytes become
    size_t bytes;
  };
  /// The longest rule with which `utf8` begins (of the first 32), as in SentencePiece. Throws kData if the
  /// charsmap is damaged.
  std::optional<Match> longest(std::string_view utf8) const;
  /// The shortest one, as in Hugging Face tokenizers, which stop at U+0000.
  std::optional<Match> shortest(std::string_view utf8) const;
  /// Whether the character stays as it is before any other ASCII character: no rule is for it alone or begins
  /// with two such characters.
  bool is_plain(uint8_t ascii) const { return !may_change_[ascii]; }

 private:
  class Walk;
  bool may_change(uint8_t ascii) const;
  std::string_view replacement(uint32_t value) const;

  std::string where_;
  std::vector<uint32_t> trie_;          // a double array of darts-clone
  std::string replacements_;            // texts that end with NUL
  std::array<bool, 128> may_change_{};  // of ASCII: see is_plain()
};

}  // namespace megalith
