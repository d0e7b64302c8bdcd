#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/machine/bytes16.h"
#include "libcore/text/identity_hash.h"

namespace megalith {

/// A token that is cut out of a text wherever its literal text occurs, before the rest is encoded, such as
/// <|endoftext|>.
struct AddedToken {
  std::string text;  // UTF-8, not empty
  int32_t id = 0;
  bool takes_space_before = false;  // "lstrip": the token includes the white space before it
  bool takes_space_after = false;   // "rstrip": the token includes the white space after it
  bool only_alone = false;  // "single_word": not found next to a letter, digit or other word character
};

/// Finds added tokens in a text from left to right; of several that start at one place, the longest. As in
/// Hugging Face tokenizers, an `only_alone` token that is rejected for its neighbours still hides the tokens
/// that begin inside it. The time grows with the text, and with its white space only once.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  /// Calls `plain(std::string_view)` for the text between added tokens (never empty) and `special(int32_t
  /// id)` for each token, in order. As in Hugging Face tokenizers, a token may begin with white space that
  /// the token before it includes. Returns how many bytes of white space around tokens were read, at most
  /// twice those of the text.
  template <class Plain, class Special>
  size_t split(std::string_view utf8, Plain&& plain, Special&& special) const {
    size_t from = 0;
    Spaces spaces;
    for (std::optional<Found> found = find(utf8, 0); found; found = find(utf8, found->end)) {
      if (found->token->only_alone && !alone(utf8, *found)) continue;
      const size_t begin = before(utf8, *found, from, spaces);
      if (begin > from) plain(utf8.substr(from, begin - from));
      special(found->token->id);
      from = after(utf8, *found, spaces);
    }
    if (from < utf8.size()) plain(utf8.substr(from));
    return spaces.read;
  }

  /// Whether some token begins with this byte.
  bool may_begin(char byte) const { return starts_[static_cast<unsigned char>(byte)] != 0; }
  /// The length of the longest token with which `utf8` (not empty) begins, or 0.
  size_t longest_at(std::string_view utf8) const {
    const AddedToken* const found = may_begin(utf8[0]) ? longest(utf8) : nullptr;
    return found ? found->text.size() : 0;
  }

  /// Adds to `hash` everything that decides which tokens are found.
  void add_to(IdentityHash& hash) const;

 private:
  struct Found {
    size_t begin, end;  // byte positions, without the white space around the token
    const AddedToken* token;
  };
  /// The first token in `utf8` that starts at `from` or later.
  std::optional<Found> find(std::string_view utf8, size_t from) const;
  size_t next_start(std::string_view utf8, size_t from) const;
  /// White space that was found after a token. Tokens in it that take it too need not search for its end.
  struct Spaces {
    size_t begin = 0, end = 0;
    size_t read = 0;  // bytes of white space that were read, before tokens too
  };
  /// before(): where the text before the token ends, but at least `from`. after(): where the text after the
  /// token begins.
  static size_t before(std::string_view utf8, const Found& found, size_t from, Spaces& spaces);
  static size_t after(std::string_view utf8, const Found& found, Spaces& spaces);

  /// The longest token with which `utf8` begins, or nullptr.
  const AddedToken* longest(std::string_view utf8) const;
  static bool alone(std::string_view utf8, const Found& found);

  std::vector<AddedToken> tokens_;      // sorted by text
  std::array<uint8_t, 256> starts_{};   // 1 for the bytes with which some token begins
  std::array<uint8_t, 256> seconds_{};  // 1 for those that may follow there in a text
  /// Few bytes, which are looked for sixteen at a time.
  struct FewBytes {
    static constexpr size_t kMost = 4;
    std::array<char, kMost> bytes;  // the last one fills the rest
    bool all = false;               // too many: every byte is taken for one
    static FewBytes of(const std::array<uint8_t, 256>& set);
    Bytes16 in(const Bytes16& text) const;
  };
  FewBytes few_starts_, few_seconds_;
  /// A bit for each pair of bytes, set if a token begins with both or consists of the first one alone. Most
  /// blanks in a text begin no token of several blanks, so this saves most searches.
  std::vector<uint64_t> pairs_;
  std::optional<char> only_start_;  // set if all tokens begin with this byte
};

}  // namespace megalith
