#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
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

/// The option name of an enumeration's value ("rope").
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
  std::function<void(size_t)> set;  // sets the member to the value with this index in `names`
};

using AnySlot = std::variant<bool*, int*, int64_t*, double*, std::string*, std::vector<std::string>*,
                             std::optional<bool>*, std::optional<int>*, std::optional<int64_t>*,
                             std::optional<double>*, std::optional<std::string>*, EnumSlot>;
/// A pointer to the member that holds a field's value. The struct that was visited owns the member. It is
/// copied, moved and destroyed in fields.cpp, as Field is: otherwise each file that declares options would
/// compile the variant's tables for that.
struct Slot : AnySlot {
  using AnySlot::AnySlot;
  Slot(const Slot&);
  Slot& operator=(const Slot&);
  Slot(Slot&&) noexcept;
  Slot& operator=(Slot&&) noexcept;
  ~Slot();
};

/// A condition that a value must satisfy beyond its type. Unset optional values satisfy every condition.
struct Constraint {
  std::string text;  // "at least 1"
  std::function<bool(double)> number = {};
  std::vector<std::string> words = {};  // the only values allowed; empty: any value
  bool obvious = false;                 // not mentioned in --help
};

/// One option, as declared.
struct Field {
  Field();
  Field(const Field&);
  Field& operator=(const Field&);
  Field(Field&&) noexcept;
  Field& operator=(Field&&) noexcept;
  ~Field();

  std::string name;  // "num-layers"
  std::string help;  // a sentence
  Slot slot;
  std::vector<std::string> aliases = {};
  std::vector<std::string> opposites = {};  // for a bool: other flags that set it to false
  std::vector<Constraint> constraints = {};
  /// For a number: words that can replace a value.
  std::vector<std::pair<std::string, int64_t>> word_values = {};
  // Values that the shell offers. Other values are accepted, too.
  std::function<std::vector<std::string>()> known = {};
  std::string metavar = {};  // name of the value in --help; empty: by type; "[FILE]": may be left out ("")
  std::string default_text = {};  // default in --help, for a field that finish() sets
  bool required = false, positional = false, unlisted = false;
  bool last_counts = false;  // for several words: repeating the option replaces the words
};

/// An argument that may follow the help text in fields().
using Trait = std::function<void(Field&)>;
Trait at_least(double min_value);
Trait between(double min_value, double max_value);  // both bounds are included
Trait positive();                                   // greater than 0
Trait one_of(std::vector<std::string> words);
Trait word_value(std::string word,
                 int64_t value);  // for an integer: also accepts this word, to which no constraint applies
Trait alias(std::vector<std::string> names);     // other spellings of the option; "-n" is given as -n
Trait opposite(std::vector<std::string> names);  // other spellings of --no-NAME
Trait metavar(std::string name);  // name of the value in --help; for FILE and DIR the shell completes paths
Trait default_text(std::string text);
/// Values that the shell offers; called only for a completion script.
Trait offers(std::function<std::vector<std::string>()> known);
Trait offers(std::vector<std::string> known);
Trait required();     // it is a problem if nothing sets the option
Trait positional();   // set by the words that are not options, in the order of declaration
Trait last_counts();  // repeating an option of several words replaces the words instead of adding to them
Trait unlisted();     // accepted, but not listed

/// A visitor that lists the fields.
class FieldList {
 public:
  template <class T, class... Traits>
  void operator()(const char* name, T& member, const char* help, const Traits&... traits) {
    add(name, slot(member), help, {&traits...});
  }
  std::vector<Field> take();

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
  void add(const char* name, Slot slot, const char* help, std::initializer_list<const Trait*> traits);
  std::vector<Field> fields_;
};

/// The fields of a config struct. They point into `config`. If several files read a struct, its header
/// declares this function an extern template, and one source instantiates it: otherwise each of those files
/// would compile all the fields.
template <class Config>
std::vector<Field> fields_of(Config& config) {
  FieldList list;
  config.fields(list);
  return list.take();
}

/// The place where a value was given. Problems begin with it: "--num-layers", "run.yaml:3: num_layers".
struct Spot {
  std::string place;  // "run.yaml:3"; empty: the command line
  std::string name;   // name of the option, as spelled there
};
/// Lower-level operations on one field.
void set_field(const Field&, const std::vector<std::string>& words, const Spot& where, Problems&);
void set_field(const Field&, const Json& value, const Spot& where, Problems&);
/// Adds the problem that set_field() would add for the field's current number; nothing if it is unset or not
/// a number.
void check_number(const Field&, const Spot& where, Problems&);
Json field_value(const Field&);            // null when unset
std::string field_text(const Field&);      // as written on the command line; empty when unset
bool is_flag(const Field&);                // whether the option is a flag, which needs no value
bool takes_several(const Field&);          // whether the option takes several words
std::string option_key(std::string_view);  // the name with "-" for "_"; names are compared in this form
std::string json_key(std::string_view);    // the name with "_" for "-", as in JSON and Megatron's args

/// An option whose value differs between two configs.
struct Difference {
  std::string name, theirs, ours;  // option name and both values as text
};

Json to_json(const std::vector<Field>&);
size_t from_json(const std::vector<Field>&, const Json&, const std::string& place,
                 Problems&);  // returns how many of the fields the JSON has
/// The fields whose values differ from `theirs`, which has the form of to_json(). Fields that `theirs` lacks
/// are left out.
std::vector<Difference> differences(const std::vector<Field>& ours, const Json& theirs);

/// {"num_layers": 12, …}: every field, names with "_" as in Megatron's args.
template <class Config>
Json to_json(Config config) {
  return to_json(fields_of(config));
}
/// Sets the fields that `args` holds under their names or an alias. Skips members that are not fields, so one
/// args.json can serve several structs. If values do not fit, throws kData with all problems, each beginning
/// with `where`.
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
