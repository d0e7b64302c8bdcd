#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What happens to another tool's option that no field has: it is ignored, which the log says, or refused.
/// This holds on the command line, in a file and in a log alike.
struct OptionFate {
  enum Values { kNone, kOne, kMaybeOne, kSeveral };
  std::string_view name;         // "moe-*": every name that begins so and has no longer match
  std::string_view tool = {};    // whose option it is
  std::string_view remedy = {};  // empty: ignored; otherwise refused, with what to do instead
  Values values = kNone;  // how many words follow the name; kNone and kMaybeOne are flags, which true or
                          // false may follow; a kMaybeOne flag can also be --no-NAME
  std::string_view plain = {};    // values that are not refused, separated by "|"; empty: only "false"
  std::string_view only = {};     // refused in this kind of run, else ignored; empty: refused in all
  std::string_view repeats = {};  // our option: the same value as that option's is not refused

  /// Whether the run decides if a value is refused.
  bool conditional() const { return !only.empty() || !repeats.empty(); }
};

/// The run that conditional fates depend on.
struct RunFacts {
  std::function<bool(std::string_view kind)> is;  // as OptionFate::only names it; empty: of every kind
  std::function<std::string(std::string_view option)> value_of;  // as text; empty: it was not given
};

/// Splits the names in a line of the table, which are separated by blanks.
std::vector<std::string_view> words_in(std::string_view names);

/// How many letters of a name the fate matches; 0: it does not apply.
size_t letters_of(const OptionFate&, std::string_view name);
/// Whether the option is refused when these words follow it; no words count as a flag's "true". The refusal
/// of a conditional fate may still be lifted().
bool refuses(const OptionFate&, std::span<const std::string> words);
/// Whether an option that refuses() rejects is harmless in this run, so that it is ignored instead.
bool lifted(const OptionFate&, std::span<const std::string> words, const RunFacts&);

/// The row of `rows` that matches the most letters of the name; null: none matches.
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
