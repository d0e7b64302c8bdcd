#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/text/identity_hash.h"

namespace megalith {

/// A token that is found as literal text before anything else happens, such as <|endoftext|>.
struct AddedToken {
  std::string text;  // UTF-8, not empty
  int32_t id = 0;
  bool takes_space_before = false;  // "lstrip": white space before it belongs to it
  bool takes_space_after = false;   // "rstrip"
  bool only_alone = false;          // "single_word": not next to a letter, digit or other word character
};

/// Finds added tokens in a text: the leftmost first, and of those that start at one place the longest. As in
/// Hugging Face tokenizers, a token that is rejected at its place (`only_alone`) still hides others that
/// begin inside it.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  /// Calls `plain(std::string_view)` for the text between added tokens (never empty) and `special(int32_t
  /// id)` for each token, in order. As in Hugging Face tokenizers, white space that one token has taken can
  /// still begin the next one.
  template <class Plain, class Special>
  void split(std::string_view utf8, Plain&& plain, Special&& special) const {
    size_t from = 0;
    for (std::optional<Found> found = find(utf8, 0); found; found = find(utf8, found->end)) {
      if (found->token->only_alone && !alone(utf8, *found)) continue;
      const size_t begin = before(utf8, *found, from);
      if (begin > from) plain(utf8.substr(from, begin - from));
      special(found->token->id);
      from = after(utf8, *found);
    }
    if (from < utf8.size()) plain(utf8.substr(from));
  }

  /// Adds to `hash` everything that decides which tokens are found.
  void add_to(IdentityHash& hash) const;

 private:
  struct Found {
    size_t begin, end;  // bytes, without the white space around the token
    const AddedToken* token;
  };
  /// The first token in `utf8` that starts at `from` or later.
  std::optional<Found> find(std::string_view utf8, size_t from) const;
  size_t next_start(std::string_view utf8, size_t from) const;
  /// Where the text before the token ends (not before `from`) and the text after it begins.
  static size_t before(std::string_view utf8, const Found& found, size_t from);
  static size_t after(std::string_view utf8, const Found& found);

  /// The longest token with which `utf8` begins, or nullptr.
  const AddedToken* longest(std::string_view utf8) const;
  static bool alone(std::string_view utf8, const Found& found);

  std::vector<AddedToken> tokens_;  // sorted by text
  std::array<bool, 256> starts_{};  // bytes with which a token begins
  std::optional<char> only_start_;  // set if all tokens begin with this byte
};

}  // namespace megalith
