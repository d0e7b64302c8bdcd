#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "libcore/json/json.h"
#include "libcore/options/problems.h"

/// Options are declared once, as the fields of a struct:
///
///   struct MergeOptions {
///     std::string input, output_prefix;
///     bool recursive = false;
///     template <class V>
///     void fields(V&& v) {
///       v("input", input, "Folder that holds the datasets.", required(), metavar("DIR"));
///       v("output-prefix", output_prefix, "Path of the merged dataset, without .bin and .idx.", required());
///       v("recursive", recursive, "Look into the folders below --input too.");
///     }
///     void finish();                        // optional: fills what depends on other fields
///     void validate(Problems&) const;       // optional: rules between fields; reports all, not the first
///   };
///
/// From this declaration come the command line, --help, the config file, the JSON in a checkpoint, the
/// differences on resume, docs/options.md, the manual page and the shell completion (options/cli.h). A
/// member's initial value is the option's default. A member is a bool, int, int64_t, double, std::string,
/// std::vector<std::string> (an option that takes several words), std::optional of one of the first five
/// (unset: not given), or an enumeration E with a function `std::vector<EnumName<E>> enum_names(E)`.
namespace megalith {

template <class E>
using EnumName = std::pair<const char*, E>;

/// An enumeration's value as its option name ("rope").
template <class E>
const char* enum_name(E value) {
  for (const auto& [name, candidate] : enum_names(value))
    if (candidate == value) return name;
  fail(ErrorKind::kInternal, "an enumeration holds ", static_cast<int>(value), ", which has no name");
}

/// A member of enumeration type, with its type erased.
struct EnumSlot {
  std::vector<std::string> names;
  std::function<std::string()> get;
  std::function<void(size_t)> set;  // an index of `names`
};

/// Where a field's value is stored: in the struct that was visited, which owns it.
using Slot = std::variant<bool*, int*, int64_t*, double*, std::string*, std::vector<std::string>*,
                          std::optional<bool>*, std::optional<int>*, std::optional<int64_t>*,
                          std::optional<double>*, std::optional<std::string>*, EnumSlot>;

/// What a value must satisfy beyond its type. Unset optional values satisfy everything.
struct Constraint {
  std::string text;  // "at least 1"
  std::function<bool(double)> number = {};
  std::vector<std::string> words = {};  // the only texts allowed; empty: any
  bool obvious = false;                 // not mentioned in --help
};

/// One option, as declared.
struct Field {
  std::string name;  // "num-layers"
  std::string help;  // a sentence
  Slot slot;
  std::vector<std::string> aliases = {};
  std::vector<std::string> opposites = {};  // of a bool: flags that set it to false
  std::vector<Constraint> constraints = {};
  std::vector<std::pair<std::string, int64_t>> word_values = {};  // of a number: words that stand for a value
  // Words for the shell to offer; other words are accepted, too.
  std::function<std::vector<std::string>()> known = {};
  std::string metavar = {};       // name of the value in --help; empty: by type
  std::string default_text = {};  // shown in --help instead of the value; for values that finish() sets
  bool required = false, positional = false, unlisted = false;
  bool last_counts = false;  // of several words: repeating the option replaces the words
};

/// What may follow the help text in fields().
using Trait = std::function<void(Field&)>;
Trait at_least(double min_value);
Trait between(double min_value, double max_value);  // both included
Trait positive();                                   // > 0
Trait one_of(std::vector<std::string> words);
Trait word_value(std::string word,
                 int64_t value);              // of an integer: also accepts the word; no constraint applies
Trait alias(std::vector<std::string> names);  // other spellings of the option
Trait opposite(std::vector<std::string> names);  // other spellings of --no-NAME
Trait metavar(std::string name);                 // FILE and DIR also select what the shell completes
Trait default_text(std::string text);
Trait offers(std::function<std::vector<std::string>()> known);  // called only for a completion script
Trait offers(std::vector<std::string> known);
Trait required();     // not giving it anywhere causes a complaint
Trait positional();   // taken from the words that are not options, in the order of declaration
Trait last_counts();  // repeating an option of several words replaces the words instead of adding to them
Trait unlisted();     // accepted, but not listed

/// A visitor that lists the fields.
class FieldList {
 public:
  template <class T, class... Traits>
  void operator()(const char* name, T& member, const char* help, const Traits&... traits) {
    Field field{.name = name, .help = help, .slot = slot(member)};
    (traits(field), ...);
    fields_.push_back(std::move(field));
  }
  std::vector<Field> take() { return std::move(fields_); }

 private:
  template <class T>
  static Slot slot(T& member) {
    if constexpr (std::is_enum_v<T>) {
      EnumSlot e;
      for (const auto& entry : enum_names(member)) e.names.emplace_back(entry.first);
      e.get = [&member] { return std::string(enum_name(member)); };
      e.set = [&member](size_t i) { member = enum_names(member)[i].second; };
      return e;
    } else {
      return &member;
    }
  }
  std::vector<Field> fields_;
};

/// The fields of a config struct. They point into `config`.
template <class Config>
std::vector<Field> fields_of(Config& config) {
  FieldList list;
  config.fields(list);
  return list.take();
}

/// Where a value was given. Complaints begin with it: "--num-layers", "run.yaml:3: num_layers".
struct Spot {
  std::string place;  // "run.yaml:3"; empty: the command line
  std::string name;   // of the option, as spelled there
};
/// Lower-level operations on one field.
void set_field(const Field&, const std::vector<std::string>& words, const Spot& where, Problems&);
void set_field(const Field&, const Json& value, const Spot& where, Problems&);
/// The complaint of set_field() about the number that the field has; nothing if it is unset or none.
void check_number(const Field&, const Spot& where, Problems&);
Json field_value(const Field&);            // null when unset
std::string field_text(const Field&);      // as written on the command line; empty when unset
bool is_flag(const Field&);                // needs no value
bool takes_several(const Field&);          // std::vector
std::string option_key(std::string_view);  // the form in which names are compared: "_" as "-"
std::string json_key(std::string_view);    // the name in JSON: "-" as "_", as in Megatron's args

/// An option on which two configs disagree.
struct Difference {
  std::string name, theirs, ours;  // option name and both values as text
};

Json to_json(const std::vector<Field>&);
size_t from_json(const std::vector<Field>&, const Json&, const std::string& place,
                 Problems&);  // returns how many of the fields the JSON has
/// Fields missing in `theirs` (in the form of to_json) do not differ.
std::vector<Difference> differences(const std::vector<Field>& ours, const Json& theirs);

/// {"num_layers": 12, …}: every field, names with "_" as in Megatron's args.
template <class Config>
Json to_json(Config config) {
  return to_json(fields_of(config));
}
/// Sets the fields that `args` has (under their names or an alias); members that are not fields are skipped,
/// so that one args.json serves all structs. Throws kData with all complaints, each beginning with `where`,
/// for values that do not fit.
template <class Config>
void from_json(Config& config, const Json& args, const std::string& where) {
  Problems problems;
  from_json(fields_of(config), args, where, problems);
  problems.throw_if_any(ErrorKind::kData);
}
template <class Config>
std::vector<Difference> differences(Config theirs, Config ours) {
  return differences(fields_of(ours), to_json(fields_of(theirs)));
}

}  // namespace megalith
