#pragma once

#include <string_view>

namespace megalith {

/// Length in bytes of the pretoken at the start of `utf8` (not empty), by GPT-2's pattern
///   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// as a regex engine finds it: the first alternative that matches. The pretokens of a text are found by
/// calling this again after each one; every byte belongs to exactly one pretoken.
size_t gpt2_pretoken(std::string_view utf8);

/// Calls `take(std::string_view)` for each pretoken of `utf8`, in order.
template <class Take>
void for_each_gpt2_pretoken(std::string_view utf8, Take&& take) {
  while (!utf8.empty()) {
    const size_t bytes = gpt2_pretoken(utf8);
    take(utf8.substr(0, bytes));
    utf8.remove_prefix(bytes);
  }
}

}  // namespace megalith
