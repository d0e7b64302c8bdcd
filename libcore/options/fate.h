#pragma once

#include <functional>
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
  Values values = kNone;  // the words that follow it: kNone and kMaybeOne are flags, which may have true or
                          // false after them; one of kMaybeOne can also be --no-NAME
  std::string_view plain = {};    // values that are not refused, separated by "|"; empty: false
  std::string_view only = {};     // kind of run that it is refused in, and ignored in others; empty: in all
  std::string_view repeats = {};  // option of ours: an equal value is not refused

  /// Whether it depends on the run that a value is refused.
  bool conditional() const { return !only.empty() || !repeats.empty(); }
};

/// The run that conditional fates depend on.
struct RunFacts {
  std::function<bool(std::string_view kind)> is;                 // of OptionFate::only; empty: every kind
  std::function<std::string(std::string_view option)> value_of;  // as text; empty: it was not given
};

/// The names in a line of the table, separated by blanks.
std::vector<std::string_view> words_in(std::string_view names);

/// How many letters of a name the fate matches; 0: it does not apply.
size_t letters_of(const OptionFate&, std::string_view name);
/// Whether the option is refused when these words follow it; none are a flag's "true". A conditional fate may
/// still be lifted().
bool refuses(const OptionFate&, std::span<const std::string> words);
/// Whether the run makes an option harmless that refuses(): it is then ignored.
bool lifted(const OptionFate&, std::span<const std::string> words, const RunFacts&);

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
