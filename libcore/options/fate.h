#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What happens to another tool's option that no field has: it is ignored, which the log says, or refused.
/// The same on the command line, in a file and in a log.
struct OptionFate {
  enum Values { kNone, kOne, kMaybeOne, kSeveral };
  std::string_view name;         // "moe-*": every name that begins so and has no longer match
  std::string_view tool = {};    // whose option it is
  std::string_view remedy = {};  // empty: ignored; otherwise refused, with what to do instead
  Values values = kNone;         // the words that follow it; a flag of kMaybeOne can also be --no-NAME
  std::string_view plain = {};   // values that are not refused, separated by "|"; empty: false
};

/// The names in a line of the table, separated by blanks.
std::vector<std::string_view> words_in(std::string_view names);

/// How many letters of a name the fate matches; 0: it does not apply.
size_t letters_of(const OptionFate&, std::string_view name);
/// Whether the option is refused when these words follow it.
bool refuses(const OptionFate&, std::span<const std::string> words);

/// The fate of a name, out of all in `rows`; null: it has none.
template <class Rows>
const typename Rows::value_type* find_fate(const Rows& rows, std::string_view name) {
  const typename Rows::value_type* found = nullptr;
  size_t most = 0;
  for (const auto& row : rows)
    if (const size_t letters = letters_of(row, name); letters > most) {
      most = letters;
      found = &row;
    }
  return found;
}

}  // namespace megalith
