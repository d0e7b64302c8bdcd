#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// What happens to another tool's option that none of our fields covers: it is ignored, which the log says,
/// or refused. This holds for the command line, a file and a log.
struct OptionFate {
  enum Values { kNone, kOne, kMaybeOne, kSeveral };
  std::string_view name;       // "moe-*" covers all names with this beginning, unless a longer entry matches
  std::string_view tool = {};  // the tool that has the option
  std::string_view remedy = {};  // empty: the option is ignored; otherwise it is refused, with this advice
  /// How many words follow the name. kNone and kMaybeOne are flags: "true" or "false" may follow, and
  /// kMaybeOne also allows --no-NAME.
  Values values = kNone;
  /// Values that are accepted all the same, separated by "|"; empty: only "false".
  std::string_view plain = {};
  std::string_view only = {};     // the kind of run in which the option is refused; empty: every kind
  std::string_view repeats = {};  // one of our options: a value equal to that option's is accepted

  /// Whether the option is a flag, whose only values are true and false.
  bool flag() const { return values == kNone || values == kMaybeOne; }
  /// Whether it depends on the run if a value is refused.
  bool conditional() const { return !only.empty() || !repeats.empty(); }
};

/// The facts about a run on which conditional fates depend.
struct RunFacts {
  /// Whether the run is of a kind in OptionFate::only; empty: of every kind.
  std::function<bool(std::string_view kind)> is;
  /// Value of one of our options as text; an empty text: it was not given.
  std::function<std::string(std::string_view option)> value_of;
};

/// Splits a text with several names at the blanks.
std::vector<std::string_view> words_in(std::string_view names);

/// The rows of a table whose lines have several names, separated by blanks: one row for each name. A line has
/// two members, the names and the row.
template <class Row, class Lines>
std::vector<Row> one_by_one(const Lines& lines) {
  std::vector<Row> all;
  for (const auto& [names, row] : lines)
    for (const std::string_view name : words_in(names)) {
      all.push_back(row);
      all.back().name = name;
    }
  return all;
}

/// Whether `words`, joined by blanks, are one of `values`, which are separated by "|". Empty `words` stand
/// for "true". Upper and lower case do not differ; "true" and "false" match every accepted spelling of a
/// flag.
bool is_one_of(std::string_view values, std::span<const std::string> words);

/// The number of letters of `name` that the fate matches; 0 if it does not match.
size_t letters_of(const OptionFate&, std::string_view name);
/// Whether the option is refused with these values; for a flag, empty `words` stand for "true". If the fate
/// is conditional, lifted() may still accept the option.
bool refuses(const OptionFate&, std::span<const std::string> words);
/// Whether this run ignores an option that refuses() rejects, because the option is harmless in it.
bool lifted(const OptionFate&, std::span<const std::string> words, const RunFacts&);

/// The row that matches the most letters of the name; null if none matches.
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
