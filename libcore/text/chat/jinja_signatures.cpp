#include "libcore/text/chat/jinja_signatures.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith::jinja {
namespace {

// Parameters as jinja2 3.1, transformers (tojson) and Python declare them, up to the last supported one.
constexpr std::array kFilters = {
    Signature{"trim", 0, {"chars"}},
    Signature{"length"},
    Signature{"count"},
    Signature{"upper"},
    Signature{"lower"},
    Signature{"capitalize"},
    Signature{"title"},
    Signature{"tojson", 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    Signature{"default", 0, {"default_value", "boolean"}},
    Signature{"d", 0, {"default_value", "boolean"}},
    Signature{"join", 0, {"d"}},
    Signature{"first"},
    Signature{"last"},
    Signature{"string"},
    Signature{"list"},
    Signature{"items"},
    Signature{"replace", 2, {"old", "new", "count"}},
    Signature{"int", 0, {"default"}},
    Signature{"safe"},
    Signature{"reverse"},
    Signature{"min"},
    Signature{"max"},
    Signature{"float", 0, {"default"}},
    Signature{"indent", 0, {"width", "first", "blank"}},
    Signature{"dictsort", 0, {"case_sensitive", "by", "reverse"}},
    Signature{"sort", 0, {"reverse", "case_sensitive", "attribute"}},
    Signature{"unique", 0, {"case_sensitive", "attribute"}},
};
constexpr std::array kMethods = {
    Signature{"strip", 0, {"chars"}, false},
    Signature{"lstrip", 0, {"chars"}, false},
    Signature{"rstrip", 0, {"chars"}, false},
    Signature{"startswith", 1, {"prefix"}, false},
    Signature{"endswith", 1, {"suffix"}, false},
    Signature{"upper"},
    Signature{"lower"},
    Signature{"title"},
    Signature{"capitalize"},
    Signature{"split", 0, {"sep", "maxsplit"}},
    Signature{"replace", 2, {"old", "new", "count"}, false},
    Signature{"join", 1, {"iterable"}, false},
    Signature{"rsplit", 0, {"sep", "maxsplit"}},
    Signature{"splitlines"},
    Signature{"find", 1, {"sub"}, false},
    Signature{"count", 1, {"sub"}, false},
    Signature{"removeprefix", 1, {"prefix"}, false},
    Signature{"removesuffix", 1, {"suffix"}, false},
    Signature{"get", 1, {"key", "default"}, false},
    Signature{"items"},
    Signature{"keys"},
    Signature{"values"},
};
constexpr std::array kFunctions = {
    Signature{"raise_exception", 1, {"message"}},
    Signature{"namespace"},  // its named arguments become its members
    Signature{"range", 1, {"start", "stop", "step"}, false},
    Signature{"strftime_now", 1, {"format"}},
};
constexpr std::array<std::string_view, 15> kTests = {"defined",  "undefined", "none",   "string",  "mapping",
                                                     "iterable", "sequence",  "number", "integer", "boolean",
                                                     "true",     "false",     "odd",    "even",    "float"};
struct Comparison {
  std::string_view test;
  const char* sign;
};
constexpr Comparison kComparisons[] = {
    {"equalto", "=="}, {"eq", "=="}, {"==", "=="},      {"sameas", "=="},     {"ne", "!="}, {"!=", "!="},
    {"in", "in"},      {"gt", ">"},  {">", ">"},        {"greaterthan", ">"}, {"ge", ">="}, {">=", ">="},
    {"lt", "<"},       {"<", "<"},   {"lessthan", "<"}, {"le", "<="},         {"<=", "<="}};
constexpr std::array<std::string_view, 11> kMappingAttributes = {
    "clear", "copy", "fromkeys", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"};
constexpr std::array<std::string_view, 11> kListAttributes = {
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort"};
constexpr std::array<std::string_view, 47> kTextAttributes = {
    "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
    "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
    "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
    "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
    "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
    "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
    "swapcase",   "title",        "translate",    "upper",   "zfill"};
constexpr std::array<std::string_view, 13> kNumberAttributes = {
    "as_integer_ratio", "bit_count", "bit_length", "conjugate", "denominator",
    "from_bytes",       "fromhex",   "hex",        "imag",      "is_integer",
    "numerator",        "real",      "to_bytes"};

template <size_t kCount>
const Signature* find(const std::array<Signature, kCount>& all, std::string_view name) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Signature& s) { return s.name == name; });
  return found == all.end() ? nullptr : &*found;
}

size_t count(const Signature& signature) {
  return static_cast<size_t>(std::count_if(signature.parameters.begin(), signature.parameters.end(),
                                           [](std::string_view name) { return !name.empty(); }));
}

}  // namespace

const Signature* find_filter(std::string_view name) {
  return find(kFilters, name);
}
const Signature* find_method(std::string_view name) {
  return find(kMethods, name);
}
const Signature* find_function(std::string_view name) {
  return find(kFunctions, name);
}
bool is_test(std::string_view name) {
  return std::find(kTests.begin(), kTests.end(), name) != kTests.end();
}
const char* sign_of_test(std::string_view name) {
  for (const auto& [test, sign] : kComparisons)
    if (test == name) return sign;
  return nullptr;
}
bool test_takes_argument(std::string_view name) {
  return name == "divisibleby" || sign_of_test(name) != nullptr;
}
bool is_selection(std::string_view filter) {
  constexpr std::array<std::string_view, 5> kSelections = {"map", "select", "reject", "selectattr",
                                                           "rejectattr"};
  return std::find(kSelections.begin(), kSelections.end(), filter) != kSelections.end();
}
bool is_python_attribute(const Json& value, std::string_view name) {
  const auto among = [name](const auto& all) { return std::find(all.begin(), all.end(), name) != all.end(); };
  return name.starts_with("__") || (value.is_object() && among(kMappingAttributes)) ||
         (value.is_array() && among(kListAttributes)) || (value.is_string() && among(kTextAttributes)) ||
         ((value.is_number() || value.is_bool()) && among(kNumberAttributes));
}

std::string arrange_arguments(Expr& call, size_t first, const Signature& signature) {
  const size_t max_count = count(signature), given = call.children.size() - first;
  if (given > max_count) return concat("takes at most ", max_count, " arguments here, found ", given);
  call.children.resize(first + max_count);
  for (auto& [name, value] : call.named) {
    const auto end = signature.parameters.begin() + static_cast<std::ptrdiff_t>(max_count);
    const auto found = std::find(signature.parameters.begin(), end, name);
    if (found == end || !signature.by_name)
      return concat("with an argument named ", quote(name), " is not supported");
    Expr& place = call.children[first + static_cast<size_t>(found - signature.parameters.begin())];
    if (place.kind != Expr::kAbsent) return concat("has its argument ", quote(name), " twice");
    place = std::move(value);
  }
  call.named.clear();
  for (size_t i = 0; i < signature.needed; ++i)
    if (call.children[first + i].kind == Expr::kAbsent)
      return concat("is missing its argument ", quote(signature.parameters[i]));
  return {};
}

}  // namespace megalith::jinja
