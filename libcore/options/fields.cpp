#include "libcore/options/fields.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "libcore/base/flag_word.h"
#include "libcore/base/text.h"

namespace megalith {

namespace {
template <class... Fs>
struct Overload : Fs... {
  using Fs::operator()...;
};
template <class... Fs>
Overload(Fs...) -> Overload<Fs...>;

Trait constrain(Constraint constraint) {
  return [constraint = std::move(constraint)](Field& field) { field.constraints.push_back(constraint); };
}
}  // namespace

Slot::Slot(const Slot&) = default;
Slot& Slot::operator=(const Slot&) = default;
Slot::Slot(Slot&&) noexcept = default;
Slot& Slot::operator=(Slot&&) noexcept = default;
Slot::~Slot() = default;

Field::Field() = default;
Field::Field(const Field&) = default;
Field& Field::operator=(const Field&) = default;
Field::Field(Field&&) noexcept = default;
Field& Field::operator=(Field&&) noexcept = default;
Field::~Field() = default;

std::vector<Field> FieldList::take() {
  return std::move(fields_);
}

void FieldList::add(const char* name, Slot slot, const char* help,
                    std::initializer_list<const Trait*> traits) {
  Field field;
  field.name = name;
  field.help = help;
  field.slot = std::move(slot);
  for (const Trait* trait : traits) (*trait)(field);
  fields_.push_back(std::move(field));
}

Trait at_least(double min_value) {
  return constrain({.text = "at least " + format_double(min_value),
                    .number = [=](double x) { return x >= min_value; },
                    .obvious = min_value == 0 || min_value == 1});
}
Trait between(double min_value, double max_value) {
  // An upper bound of this size or more is not shown in --help. It only ensures that products of several
  // options fit their type.
  constexpr double kEndless = 1024;
  return constrain({.text = "between " + format_double(min_value) + " and " + format_double(max_value),
                    .number = [=](double x) { return x >= min_value && x <= max_value; },
                    .obvious = max_value >= kEndless});
}
Trait positive() {
  return constrain({.text = "greater than 0", .number = [](double x) { return x > 0; }, .obvious = true});
}
Trait one_of(std::vector<std::string> words) {
  std::string text = "one of " + join(words, ", ");
  return constrain({.text = std::move(text), .words = std::move(words)});
}
Trait word_value(std::string word, int64_t value) {
  return [entry = std::pair(std::move(word), value)](Field& f) { f.word_values.push_back(entry); };
}
Trait alias(std::vector<std::string> names) {
  return
      [names = std::move(names)](Field& f) { f.aliases.insert(f.aliases.end(), names.begin(), names.end()); };
}
Trait opposite(std::vector<std::string> names) {
  return [names = std::move(names)](Field& f) {
    f.opposites.insert(f.opposites.end(), names.begin(), names.end());
  };
}
Trait metavar(std::string name) {
  return [name = std::move(name)](Field& f) { f.metavar = name; };
}
Trait default_text(std::string text) {
  return [text = std::move(text)](Field& f) { f.default_text = text; };
}
Trait offers(std::function<std::vector<std::string>()> known) {
  return [known = std::move(known)](Field& f) { f.known = known; };
}
Trait offers(std::vector<std::string> known) {
  return offers([known = std::move(known)] { return known; });
}
Trait required() {
  return [](Field& f) { f.required = true; };
}
Trait positional() {
  return [](Field& f) { f.positional = true; };
}
Trait last_counts() {
  return [](Field& f) { f.last_counts = true; };
}
Trait unlisted() {
  return [](Field& f) { f.unlisted = true; };
}

std::string option_key(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

std::string json_key(std::string_view name) {
  std::string key(name);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

namespace {
/// Adds problems about the value of one field at one place.
struct Report {
  const Field& field;
  const Spot& where;
  Problems& problems;
  bool refuse(const std::string& found, const std::string& wanted) const {
    const std::string head = where.place.empty() ? "--" : where.place + ": ";
    problems.add(Problem{.text = head + where.name,
                         .option = field.name,
                         .found = found,
                         .wanted = wanted,
                         .place = where.place,
                         .options = {field.name}});
    return false;
  }
};

bool refuse_word(const std::string& word, const std::vector<std::string>& words, const Report& report) {
  const auto near = nearest(word, words);
  return report.refuse(quote(word), "one of " + join(words, ", ") +
                                        (near ? "; did you mean " + quote(*near) + "?" : std::string()));
}

bool satisfies(const Field& field, double value, const Report& report) {
  if (!std::isfinite(value)) return report.refuse(format_double(value), "a finite number");
  if (std::abs(value) > std::numeric_limits<float>::max())
    return report.refuse(format_double(value), "between -3.4e38 and 3.4e38, the limits of fp32");
  for (const Constraint& c : field.constraints)
    if (c.number && !c.number(value)) return report.refuse(format_double(value), c.text);
  return true;
}

bool satisfies(const Field& field, const std::string& value, const Report& report) {
  for (const Constraint& c : field.constraints)
    if (!c.words.empty() && std::find(c.words.begin(), c.words.end(), value) == c.words.end())
      return refuse_word(value, c.words, report);
  return true;
}

/// Each function converts a text to a value. If the text does not fit, it adds a problem and returns false.
bool convert(const Field&, const std::string& text, bool& out, const Report& report) {
  const auto value = parse_flag(text);
  if (!value) return report.refuse(quote(text), "true or false");
  out = *value;
  return true;
}
bool convert(const Field& field, const std::string& text, int64_t& out, const Report& report) {
  std::string wanted = "an integer";
  for (const auto& [word, value] : field.word_values) {
    if (text == word) {
      out = value;
      return true;
    }
    wanted += " or " + word;
  }
  const auto value = parse_int(text);
  if (!value) return report.refuse(quote(text), wanted);
  if (!satisfies(field, static_cast<double>(*value), report)) return false;
  out = *value;
  return true;
}
bool convert(const Field& field, const std::string& text, int& out, const Report& report) {
  int64_t wide = 0;
  if (!convert(field, text, wide, report)) return false;
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max())
    return report.refuse(text, "an integer below 2^31");
  out = static_cast<int>(wide);
  return true;
}
bool convert(const Field& field, const std::string& text, double& out, const Report& report) {
  const auto value = parse_double(text);
  if (!value) return report.refuse(quote(text), "a number");
  if (!satisfies(field, *value, report)) return false;
  out = *value;
  return true;
}
bool convert(const Field& field, const std::string& text, std::string& out, const Report& report) {
  if (!satisfies(field, text, report)) return false;
  out = text;
  return true;
}

void set_enum(const EnumSlot& slot, const std::string& word, const Report& report) {
  const auto found = std::find(slot.names.begin(), slot.names.end(), word);
  if (found == slot.names.end())
    refuse_word(word, slot.names, report);
  else
    slot.set(static_cast<size_t>(found - slot.names.begin()));
}

/// A JSON scalar as a word of a command line; nothing for null, arrays and objects.
std::optional<std::string> json_word(const Json& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_int()) return std::to_string(value.as_int());
  if (value.is_number()) return format_double(value.as_double());
  return std::nullopt;
}
}  // namespace

void set_field(const Field& field, const std::vector<std::string>& words, const Spot& where,
               Problems& problems) {
  const Report report{field, where, problems};
  if (const auto* list = std::get_if<std::vector<std::string>*>(&field.slot)) {
    for (const std::string& word : words)
      if (!satisfies(field, word, report)) return;
    **list = words;
    return;
  }
  if (words.size() != 1) {
    report.refuse(quote(join(words, " ")), "one value");
    return;
  }
  std::visit(Overload{[&](const EnumSlot& slot) { set_enum(slot, words[0], report); },
                      [](std::vector<std::string>*) {},  // handled above
                      [&]<class T>(std::optional<T>* slot) {
                        T value{};
                        if (convert(field, words[0], value, report)) *slot = std::move(value);
                      },
                      [&](auto* slot) { convert(field, words[0], *slot, report); }},
             field.slot);
}

void set_field(const Field& field, const Json& value, const Spot& where, Problems& problems) {
  if (value.is_null()) {
    std::visit(Overload{[]<class T>(std::optional<T>* slot) { slot->reset(); }, [](const auto&) {}},
               field.slot);
    return;
  }
  std::vector<std::string> words;
  if (value.is_array() && takes_several(field)) {
    for (const Json& element : value.as_array())
      if (const auto word = json_word(element)) words.push_back(*word);
    if (words.size() != value.as_array().size()) words.clear();
  } else if (const auto word = json_word(value)) {
    words.push_back(*word);
  }
  if (words.empty() && !(value.is_array() && value.as_array().empty() && takes_several(field)))
    Report{field, where, problems}.refuse(value.dump(),
                                          takes_several(field) ? "a list of words" : "one value");
  else
    set_field(field, words, where, problems);
}

Json field_value(const Field& field) {
  return std::visit(
      Overload{[](const EnumSlot& slot) -> Json { return slot.get(); },
               [](const std::vector<std::string>* list) -> Json {
                 Json array = Json::array();
                 for (const std::string& word : *list) array.push_back(word);
                 return array;
               },
               []<class T>(const std::optional<T>* slot) -> Json { return *slot ? Json(**slot) : Json(); },
               [](const auto* slot) -> Json { return *slot; }},
      field.slot);
}

void check_number(const Field& field, const Spot& where, Problems& problems) {
  const Json value = field_value(field);
  if (value.is_number()) satisfies(field, value.as_double(), Report{field, where, problems});
}

namespace {
std::string value_text(const Json& value) {
  if (value.is_null()) return {};
  if (const auto word = json_word(value)) return *word;
  if (!value.is_array()) return value.dump();
  std::vector<std::string> words;
  for (const Json& element : value.as_array()) words.push_back(value_text(element));
  return join(words, " ");
}

bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return a.as_double() == b.as_double();
  return a == b;
}

/// The member of `args` that sets `field`, under the field's name or an alias; null if there is none.
const Json* member_of(const Json& args, const Field& field) {
  if (const Json* value = args.find(json_key(field.name))) return value;
  for (const std::string& other : field.aliases)
    if (const Json* value = args.find(json_key(other))) return value;
  return nullptr;
}
}  // namespace

std::string field_text(const Field& field) {
  return value_text(field_value(field));
}

bool is_flag(const Field& field) {
  return std::holds_alternative<bool*>(field.slot) ||
         std::holds_alternative<std::optional<bool>*>(field.slot);
}

bool takes_several(const Field& field) {
  return std::holds_alternative<std::vector<std::string>*>(field.slot);
}

Json to_json(const std::vector<Field>& fields) {
  Json args = Json::object();
  for (const Field& field : fields) args.set(json_key(field.name), field_value(field));
  return args;
}

size_t from_json(const std::vector<Field>& fields, const Json& args, const std::string& place,
                 Problems& problems) {
  size_t found = 0;
  for (const Field& field : fields) {
    const Json* value = member_of(args, field);
    if (!value) continue;
    ++found;
    if (same_value(*value, field_value(field)))
      continue;  // not checked: a default need not satisfy the constraints
    set_field(field, *value, {place, json_key(field.name)}, problems);
  }
  return found;
}

std::vector<Difference> differences(const std::vector<Field>& ours, const Json& theirs) {
  std::vector<Difference> list;
  for (const Field& field : ours) {
    const Json* value = member_of(theirs, field);
    if (value && !same_value(*value, field_value(field)))
      list.push_back({.name = field.name, .theirs = value_text(*value), .ours = field_text(field)});
  }
  return list;
}

}  // namespace megalith
