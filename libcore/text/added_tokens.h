#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// A token that is found as literal text before anything else happens, such as <|endoftext|>.
struct AddedToken {
  std::string text;  // UTF-8, not empty
  int32_t id = 0;
  bool takes_space_before = false;  // "lstrip": white space before it belongs to it
  bool takes_space_after = false;   // "rstrip"
};

/// Finds added tokens in a text: the leftmost first, of those that start at one place the longest.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);

  struct Match {
    size_t begin, end;  // bytes, white space taken along included
    int32_t id;
  };
  /// The first match in `utf8` that starts at `from` or later.
  std::optional<Match> find(std::string_view utf8, size_t from) const;

 private:
  size_t next_start(std::string_view utf8, size_t from) const;

  std::vector<AddedToken> tokens_;  // longest first
  std::array<bool, 256> starts_{};  // bytes with which one begins
  std::optional<char> only_start_;  // when all begin with the same byte
};

}  // namespace megalith
