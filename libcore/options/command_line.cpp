#include "libcore/options/command_line.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

#include <boost/program_options.hpp>

#include "libcore/base/flag_word.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"

namespace megalith {

namespace po = boost::program_options;

namespace {
/// Whether this is a name like "-n", which is given with its one dash, and only on the command line.
bool is_short(const std::string& name) {
  return name.size() == 2 && name[0] == '-' && std::isalpha(static_cast<unsigned char>(name[1]));
}

/// Whether the option may be given without a value, which sets the empty text. "[A,B)" is an interval, not a
/// value that may be left out.
bool stands_alone(const Field& field) {
  return field.metavar.starts_with('[') && field.metavar.ends_with(']');
}
}  // namespace

void OptionTable::add(const Field& field) {
  const auto claim = [&](const std::string& name, bool negated) {
    if (!spellings.emplace(option_key(name), OptionMatch{fields.size(), negated}).second)
      fail(ErrorKind::kInternal, "two options are called --", name);
  };
  claim(field.name, false);
  for (const std::string& name : field.aliases) claim(name, false);
  for (const std::string& name : field.opposites) claim(name, true);
  if (is_flag(field)) {
    claim("no-" + field.name, true);
    for (const std::string& name : field.aliases)
      if (!is_short(name)) claim("no-" + name, true);
  }
  fields.push_back(&field);
}

const OptionMatch* OptionTable::find(const std::string& name) const {
  const auto found = spellings.find(option_key(name));
  return found == spellings.end() ? nullptr : &found->second;
}

const OptionFate* OptionTable::find_fate(const std::string& name) const {
  return megalith::find_fate(fates.all(), option_key(name));
}

const std::vector<OptionFate>& FateTable::all() const {
  for (const auto& make : std::exchange(makers_, {})) {
    const std::vector<OptionFate> more = make();
    made_.insert(made_.end(), more.begin(), more.end());
  }
  return made_;
}

namespace {
void complain(const Spot& where, Problems& problems, std::string_view what, std::string_view remedy = {}) {
  if (where.place.empty())
    problems.add(Opt{where.name}, what, remedy);
  else
    problems.add_at(where.place, where.name, what, remedy);
}
void refuse(const OptionFate& fate, const Spot& where, Problems& problems) {
  complain(where, problems, " is not supported; ", fate.remedy);
}

/// What the words of an ignored option have to be, if they are not that; else empty. The rules are those of
/// our own options.
std::string_view wanted_words(const OptionFate& fate, const std::vector<std::string>& words) {
  if (fate.flag()) return words.empty() || (words.size() == 1 && parse_flag(words[0])) ? "" : "true or false";
  return fate.values == OptionFate::kOne && words.size() > 1 ? "one value" : "";
}

/// Whether an ignored option has the values that the other tool gives it. If not, adds a problem.
bool has_values(const OptionFate& fate, const IgnoredOption& option, Problems& problems) {
  if (!fate.flag() && option.words.empty()) {
    complain(option.where, problems, " needs a value");
    return false;
  }
  const std::string_view wanted = wanted_words(fate, option.words);
  if (!wanted.empty())
    complain(option.where, problems, concat(' ', quote(join(option.words, " ")), ": wanted ", wanted));
  return wanted.empty();
}
}  // namespace

void FatedOptions::take(const OptionFate& fate, IgnoredOption option, Problems& problems) {
  if (fate.remedy.empty() && !has_values(fate, option, problems)) return;
  if (!refuses(fate, option.words))
    ignored.push_back(std::move(option));
  else if (fate.conditional())
    conditional.push_back({&fate, std::move(option)});
  else
    refuse(fate, option.where, problems);
}

void FatedOptions::append(const FatedOptions& other) {
  ignored.insert(ignored.end(), other.ignored.begin(), other.ignored.end());
  conditional.insert(conditional.end(), other.conditional.begin(), other.conditional.end());
}

void FatedOptions::decide(const RunFacts& run, Problems& problems) {
  for (ConditionalOption& one : std::exchange(conditional, {}))
    if (lifted(*one.fate, one.option.words, run))
      ignored.push_back(std::move(one.option));
    else
      refuse(*one.fate, one.option.where, problems);
}

namespace {
/// Whether the words of two names differ only by typing mistakes: "lern-rate" agrees with "learn-rate", but
/// "src-length" is another option than "seq-length".
bool words_agree(const std::string& name, const std::string& other) {
  const std::vector<std::string> ours = split(name, '-'), theirs = split(other, '-');
  if (ours.size() != theirs.size()) return true;  // a dash is missing or added: nearest() decides
  for (size_t i = 0; i < ours.size(); ++i)
    if (ours[i] != theirs[i] && !nearest(ours[i], std::span(&theirs[i], 1))) return false;
  return true;
}

/// Whether two names are similar only because they are short: every word of three letters is one edit away
/// from many others. Two kinds of edits still count as typing mistakes: the same letters in another order,
/// and the additional "s" of a plural.
bool short_neighbours(std::string name, std::string other) {
  constexpr size_t kShort = 3;
  if (std::min(name.size(), other.size()) > kShort || name == other + "s") return false;
  std::sort(name.begin(), name.end());
  std::sort(other.begin(), other.end());
  return name != other;
}

std::optional<std::string> nearest_option(const std::string& name, std::vector<std::string> names) {
  std::erase_if(names, [&](const std::string& other) {
    return !words_agree(name, other) || short_neighbours(name, other);
  });
  return nearest(name, names);
}
}  // namespace

const char* OptionTable::ours_of(const std::string& name) const {
  for (const PeerName& peer : peers) {
    if (name != peer.name) continue;
    const std::string_view ours = std::string_view(peer.ours).substr(2);  // without dashes
    return find(std::string(ours.substr(0, ours.find_first_of(" ,;")))) ? peer.ours : nullptr;
  }
  return nullptr;
}

std::string OptionTable::did_you_mean(const std::string& name, const std::string& prefix) const {
  const std::string own = option_key(name);
  std::vector<std::string> names;
  for (const auto& [key, match] : spellings)
    if (!fields[match.field]->unlisted && !is_short(key)) names.push_back(key);
  if (find(own)) return "; did you mean " + quote(prefix + own) + "?";  // the user typed "-lr", with one dash
  if (const char* ours = ours_of(own)) return concat("; here it is ", ours);
  // Another tool's option is not a typing mistake, so it gets no suggestion.
  if (std::string who = elsewhere ? elsewhere(own) : std::string(); !who.empty()) return who;
  const auto near = nearest_option(own, names);
  return near ? "; did you mean " + quote(prefix + *near) + "?" : std::string();
}

std::string negate_word(const std::string& word) {
  const auto flag = parse_flag(word);
  if (!flag) return word;
  return *flag ? "false" : "true";
}

namespace {
bool is_option(const std::string& word) {
  return word.size() > 2 && word[0] == '-' && word[1] == '-' &&
         std::isalpha(static_cast<unsigned char>(word[2]));
}

/// Whether the word looks like a short option such as "-n", which is neither an option here nor a likely
/// value. Numbers, "-" by itself and texts with blanks are values; argparse uses the same rule.
bool looks_short(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1])) &&
         word.find_first_of(" \n\t") == std::string::npos && !parse_double(word);
}

/// Whether the word begins with one dash: "-5", "-.5", "-inf". Such a word is a value if a number is
/// expected. If a text is expected, it is more likely another tool's option with one dash.
bool begins_with_dash(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         (std::isalnum(static_cast<unsigned char>(word[1])) || word[1] == '.') &&
         word.find_first_of(" \n\t") == std::string::npos;
}

bool takes_texts(const Field& field) {
  return field.metavar == "TEXT";
}

bool is_flag_value(const std::string& word) {
  const std::string lower = lower_ascii(word);
  return lower == "true" || lower == "false" || lower == "1" || lower == "0";
}

/// Removes one option and its values from the front of the remaining words, and returns them.
/// Boost.Program_options calls it for each word.
class OptionTaker {
 public:
  OptionTaker(const OptionTable& table, CommandLine& out, Problems& problems)
      : table_(table), out_(out), problems_(problems) {}

  std::vector<po::option> operator()(std::vector<std::string>& args) {
    const std::string word = args.front();
    if (const OptionMatch* match = is_short(word) ? table_.find(word) : nullptr) {
      args.front() = "--" + table_.fields[match->field]->name;
      return (*this)(args);
    }
    if (!is_option(word)) return take_other(args);
    args.erase(args.begin());
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals - 2);
    adjacent_ = equals == std::string::npos ? std::nullopt : std::optional(word.substr(equals + 1));
    if (const OptionMatch* match = table_.find(name)) return take(*match, name, args);
    if (const OptionFate* fate = table_.find_fate(name)) return apply_fate(name, *fate, args);
    return unknown("--" + name, args);
  }

 private:
  std::vector<po::option> take_other(std::vector<std::string>& args) {
    const std::string word = args.front();
    const bool looks_like_option = word.size() > 1 && word[0] == '-' && word != "--" && !parse_double(word);
    if (!looks_like_option) return {};  // Boost then treats the word as positional
    args.erase(args.begin());
    return unknown(word, args);
  }

  std::vector<po::option> unknown(const std::string& spelling, std::vector<std::string>& args) {
    const size_t dashes = std::min(spelling.find_first_not_of('-'), spelling.size());
    problems_.add("unknown option ", quote(spelling), table_.did_you_mean(spelling.substr(dashes), "--"));
    skip_values(args);
    return {};
  }

  /// Skips the words that are probably values of an option that was refused; otherwise each word would cause
  /// another problem.
  static std::vector<std::string> skip_values(std::vector<std::string>& args) {
    const auto end = std::find_if(args.begin(), args.end(), [](const auto& a) { return a.starts_with('-'); });
    std::vector<std::string> values(args.begin(), end);
    args.erase(args.begin(), end);
    return values;
  }

  std::vector<po::option> take(const OptionMatch& match, const std::string& name,
                               std::vector<std::string>& args) {
    const Field& field = *table_.fields[match.field];
    po::option option;
    option.string_key = field.name;
    option.original_tokens = {name};
    if (is_flag(field)) {
      const std::string value = take_flag_value(args);
      option.value = {match.negated ? negate_word(value) : value};
    } else if (adjacent_) {
      option.value = {*adjacent_};
    } else {
      option.value = take_words(field, name, args);
      if (option.value.empty() && refused_) return {};
      if (option.value.empty() && stands_alone(field)) option.value = {""};
    }
    if (!option.value.empty()) return {option};
    problems_.add(
        Opt{name}, " needs a value",
        args.empty() || !looks_short(args.front())
            ? std::string()
            : concat("; one that begins with \"-\" is given as ", quote("--" + name + "=" + args.front())));
    if (!args.empty() && looks_short(args.front())) args.erase(args.begin());
    return {};
  }

  /// Removes the words that are values of this option from `args`, and returns them.
  std::vector<std::string> take_words(const Field& field, const std::string& name,
                                      std::vector<std::string>& args) {
    const bool number = !takes_several(field) && !std::holds_alternative<std::string*>(field.slot);
    std::vector<std::string> words;
    refused_ = false;
    do {
      if (args.empty() || is_option(args.front()) || args.front() == "--" || looks_short(args.front())) break;
      if (number) unglue(name, args);
      if (takes_texts(field) && begins_with_dash(args.front())) {
        problems_.add("unknown option ", quote(args.front()), "; as a value of ", Opt{name},
                      " it is given as ", quote("--" + name + "=" + args.front()));
        refused_ = true;
      } else {
        words.push_back(args.front());
      }
      args.erase(args.begin());
    } while (takes_several(field));
    return words;
  }

  std::string take_flag_value(std::vector<std::string>& args) {
    if (adjacent_) return *adjacent_;
    if (args.empty()) return "true";
    unglue("", args);
    if (!is_flag_value(args.front())) return "true";
    std::string value = args.front();
    args.erase(args.begin());
    return value;
  }

  /// Splits "20--seed" into "20 --seed". A shell script produces this word if a line ends in "20\" without a
  /// blank before the backslash: the shell then joins it to the next line.
  void unglue(const std::string& name, std::vector<std::string>& args) const {
    const std::string word = args.front();
    const size_t at = word.find("--");
    if (at == std::string::npos || at == 0 || !parse_double(word.substr(0, at)) ||
        !is_option(word.substr(at)))
      return;
    const std::string next = word.substr(at + 2, word.find('=', at) - at - 2);
    if (!table_.find(next) && !table_.find_fate(next)) return;
    warn(quote(word), " was read as two words; put a blank before the \"\\\" at the end of the line",
         name.empty() ? std::string() : " of --" + name);
    args.front() = word.substr(0, at);
    args.insert(args.begin() + 1, word.substr(at));
  }

  /// Handles another tool's option: it is ignored and named in the log, or refused.
  std::vector<po::option> apply_fate(const std::string& name, const OptionFate& fate,
                                     std::vector<std::string>& args) {
    std::vector<std::string> words;
    if (adjacent_)
      words.push_back(*adjacent_);
    else
      words = fate.remedy.empty() ? take_ignored(name, fate, args) : skip_values(args);
    out_.fated.take(fate, {.name = "--" + name, .words = std::move(words), .where = {{}, name}}, problems_);
    return {};
  }

  std::vector<std::string> take_ignored(const std::string& name, const OptionFate& fate,
                                        std::vector<std::string>& args) const {
    std::vector<std::string> words;
    if (args.empty()) return words;
    unglue(fate.flag() ? "" : name, args);
    if (fate.flag() && !is_flag_value(args.front())) return words;
    do {
      if (args.empty() || is_option(args.front())) break;
      words.push_back(args.front());
      args.erase(args.begin());
    } while (fate.values == OptionFate::kSeveral);
    return words;
  }

  const OptionTable& table_;
  CommandLine& out_;
  Problems& problems_;
  std::optional<std::string> adjacent_;  // VALUE of --name=VALUE
  bool refused_ = false;                 // whether take_words() refused some words
};

/// Assigns the words that are not options to the positional fields, in order; a field of several words takes
/// the rest.
void place_positionals(const OptionTable& table, const std::vector<std::string>& words, CommandLine& out,
                       Problems& problems) {
  size_t next = 0;
  for (size_t i = 0; i < table.fields.size() && next < words.size(); ++i) {
    if (!table.fields[i]->positional) continue;
    const size_t end = takes_several(*table.fields[i]) ? words.size() : next + 1;
    out.options.push_back({.field = i,
                           .words = {words.begin() + static_cast<std::ptrdiff_t>(next),
                                     words.begin() + static_cast<std::ptrdiff_t>(end)}});
    next = end;
  }
  for (; next < words.size(); ++next) problems.add("unexpected argument ", quote(words[next]));
}
}  // namespace

CommandLine parse_command_line(const OptionTable& table, const std::vector<std::string>& arguments,
                               Problems& problems) {
  po::options_description description;
  for (const Field* field : table.fields)
    description.add_options()(field->name.c_str(), po::value<std::vector<std::string>>());
  CommandLine out;
  OptionTaker taker(table, out, problems);
  const po::parsed_options parsed =
      po::command_line_parser(arguments)
          .options(description)
          .style(po::command_line_style::allow_long | po::command_line_style::long_allow_next |
                 po::command_line_style::long_allow_adjacent)
          .extra_style_parser([&](std::vector<std::string>& args) { return taker(args); })
          .run();
  std::vector<std::string> positionals;
  for (const po::option& option : parsed.options) {
    if (option.string_key.empty())
      positionals.insert(positionals.end(), option.value.begin(), option.value.end());
    else
      out.options.push_back({.field = table.find(option.string_key)->field,
                             .words = option.value,
                             .spelling = option.original_tokens.front()});
  }
  place_positionals(table, positionals, out, problems);
  return out;
}

}  // namespace megalith
