#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What an option of another tool is here, where no field has it: ignored, which the log says, or refused. On
/// the command line, in a file and in a log it is the same.
struct OptionFate {
  enum Values { kNone, kOne, kMaybeOne, kSeveral };
  std::string_view name;         // "moe-*": every name that begins so, where no longer one fits
  std::string_view tool = {};    // whose option it is
  std::string_view remedy = {};  // empty: ignored; else refused, and what to do instead
  Values values = kNone;         // words that follow it; a flag of kMaybeOne is --no-NAME, too
  std::string_view plain = {};   // values that are not refused, divided by "|"; empty: false
};

/// The names of a table's line, which blanks divide.
std::vector<std::string_view> words_in(std::string_view names);

/// How many letters of a name the fate is about; 0: it is another option's.
size_t letters_of(const OptionFate&, std::string_view name);
/// Whether the option is refused with these words behind it.
bool refuses(const OptionFate&, std::span<const std::string> words);

/// The fate of a name, of all in `rows`; null: it has none.
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
