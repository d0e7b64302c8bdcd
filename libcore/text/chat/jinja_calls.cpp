#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <map>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/text/chat/jinja_renderer.h"
#include "libcore/text/chat/jinja_signatures.h"
#include "libcore/text/chat/jinja_text.h"

namespace megalith::jinja {
namespace {

constexpr size_t kMostReason = 1000;  // bytes of what a template refuses with

bool is_none(const Value& value) {
  const Json* json = json_of(value);
  return json != nullptr && json->is_null();
}

Json list_of(const std::vector<std::string>& texts) {
  Json out = Json::array();
  for (const std::string& text : texts) out.push_back(text);
  return out;
}

}  // namespace

std::optional<Value> Renderer::argument(const Expr& expr, size_t i) {
  if (expr.children[i].kind == Expr::kAbsent) return std::nullopt;
  return eval(expr.children[i]);
}

bool Renderer::flag_argument(const Expr& expr, size_t i) {
  const auto given = argument(expr, i);
  return given && truth(*given);
}
std::optional<std::string> Renderer::text_argument(const Expr& expr, size_t i) {
  const std::optional<Value> value = argument(expr, i);
  if (!value || is_none(*value)) return std::nullopt;
  return text_of(*value, expr.line, concat(quote(expr.text), ": its argument"));
}

std::optional<int64_t> Renderer::integer_argument(const Expr& expr, size_t i) {
  const std::optional<Value> value = argument(expr, i);
  if (!value || is_none(*value)) return std::nullopt;
  return integer_of(*value, expr.line, concat(quote(expr.text), ": its argument"));
}

Value Renderer::filter(const Expr& expr) {
  using Filter = Value (*)(Renderer&, const Expr&, const Value&);
  constexpr Filter kDefault = [](Renderer& r, const Expr& e, const Value& v) { return r.default_of(e, v); };
  constexpr Filter kLength = [](Renderer& r, const Expr& e, const Value& v) -> Value {
    return Json(r.length(v, e.line));
  };
  constexpr Filter kExtreme = [](Renderer& r, const Expr& e, const Value& v) { return r.extreme(e, v); };
  constexpr Filter kEnd = [](Renderer& r, const Expr& e, const Value& v) { return r.end_of(e, v); };
  static const std::map<std::string_view, Filter> kFilters = {
      {"count", kLength},
      {"d", kDefault},
      {"default", kDefault},
      {"first", kEnd},
      {"int", [](Renderer& r, const Expr& e, const Value& v) { return r.to_integer(e, v); }},
      {"items", [](Renderer& r, const Expr& e,
                   const Value& v) { return is_undefined(v) ? Value(Json::array()) : r.items(v, e.line); }},
      {"join",
       [](Renderer& r, const Expr& e, const Value& v) {
         const Json::Array all = r.entries(v, e.line);
         return r.join(all, r.printed(r.argument(e, 1).value_or(Json("")), e.line), e.line);
       }},
      {"last", kEnd},
      {"length", kLength},
      {"list",
       [](Renderer& r, const Expr& e, const Value& v) -> Value { return Json(r.entries(v, e.line)); }},
      {"string",
       [](Renderer& r, const Expr& e, const Value& v) -> Value { return Json(r.printed(v, e.line)); }},
      {"tojson", [](Renderer& r, const Expr& e, const Value& v) { return r.to_json(e, v); }},
      {"dictsort", [](Renderer& r, const Expr& e, const Value& v) { return r.dictsort(e, v); }},
      {"float",
       [](Renderer& r, const Expr& e, const Value& v) -> Value {
         const Json* json = json_of(v);
         if (json != nullptr && json->is_number()) return Json(json->as_double());
         const auto number = is_text(v) ? r.number_in(json->as_string(), e.line) : std::nullopt;
         return number ? Value(Json(number->as_double())) : r.argument(e, 1).value_or(Json(0.0));
       }},
      {"indent", [](Renderer& r, const Expr& e, const Value& v) { return r.indented(e, v); }},
      {"max", kExtreme},
      {"min", kExtreme},
      {"reverse", [](Renderer& r, const Expr& e, const Value& v) { return r.reversed(v, e.line); }},
      {"safe",
       [](Renderer& r, const Expr& e, const Value& v) -> Value { return Json(r.printed(v, e.line)); }},
      {"sort", [](Renderer& r, const Expr& e, const Value& v) { return r.sort(e, v); }},
      {"unique", [](Renderer& r, const Expr& e, const Value& v) { return r.unique(e, v); }},
  };
  const Value value = eval(expr.children[0]);
  if (is_selection(expr.text)) return selection(expr, value);
  const auto found = kFilters.find(expr.text);
  if (found != kFilters.end()) return found->second(*this, expr, value);
  return text_operation(expr, Json(printed(value, expr.line)));
}

Value Renderer::default_of(const Expr& expr, const Value& value) {
  const auto as_false = argument(expr, 2);
  const bool replaced = is_undefined(value) || (as_false && truth(*as_false) && !truth(value));
  return replaced ? argument(expr, 1).value_or(Json("")) : value;
}

/// The filters "first" and "last".
Value Renderer::end_of(const Expr& expr, const Value& value) {
  const bool first = expr.text == "first";
  if (is_text(value)) return item(value, Json(first ? 0 : -1), expr.line);
  const Json::Array all = entries(value, expr.line);
  if (all.empty()) return Undefined{};
  return first ? all.front() : all.back();
}

Value Renderer::to_json(const Expr& expr, const Value& value) {
  const Json* json = json_of(value);
  if (json == nullptr) refuse(expr.line, concat("\"tojson\" of ", kind_of(value)));
  JsonStyle style;
  if (const auto ascii = argument(expr, 1)) style.ensure_ascii = truth(*ascii);
  style.indent = integer_argument(expr, 2);
  if (style.indent) style.item_separator = ",";
  if (style.indent && *style.indent > kMaxIndent)
    refuse(expr.line, concat("\"tojson\" with an indent of more than ", kMaxIndent));
  if (const auto separators = argument(expr, 3); separators && !is_none(*separators)) {
    const Json::Array pair = entries(*separators, expr.line);
    if (pair.size() != 2) refuse(expr.line, "\"tojson\" with other than two separators");
    style.item_separator = text_of(pair[0], expr.line, "a separator");
    style.key_separator = text_of(pair[1], expr.line, "a separator");
  }
  if (const auto sorted = argument(expr, 4)) style.sort_keys = truth(*sorted);
  return Json(dump_json(*json, style));  // if the text was truncated, eval() refuses it
}

/// The number in a text as Python's int() reads it, or float() if int() cannot; nothing if neither can.
std::optional<Json> Renderer::number_in(const std::string& given, int line) const {
  std::string text = strip(given, std::nullopt, Side::kBoth);
  if (!is_ascii(text) || text.find('_') != std::string::npos)
    refuse(line, concat("\"int\" of ", quote(text), " is not supported"));
  if (text.starts_with('+') && !text.starts_with("+-")) text.erase(0, 1);
  if (const auto integer = parse_int(text)) return Json(*integer);
  const std::optional<double> number = parse_double(text);
  if (!number || std::isnan(*number)) return std::nullopt;
  return Json(*number);
}

/// The filter "int": the result of int(), or of int(float()) if int() fails, or the argument of the filter if
/// both fail.
Value Renderer::to_integer(const Expr& expr, const Value& value) {
  const Json* json = json_of(value);
  if (json == nullptr) refuse(expr.line, concat("\"int\" of ", kind_of(value)));
  if (json->is_bool()) return Json(int64_t{json->as_bool()});
  std::optional<Json> number;
  if (json->is_number()) number = *json;
  if (json->is_string()) number = number_in(json->as_string(), expr.line);
  if (!number) return argument(expr, 1).value_or(Json(0));
  if (number->is_int()) return *number;
  if (!(std::fabs(number->as_double()) < 0x1p63)) refuse(expr.line, "\"int\" of a number too large");
  return Json(static_cast<int64_t>(number->as_double()));
}

int64_t Renderer::length(const Value& value, int line) {
  if (is_text(value)) return count_code_points(json_of(value)->as_string());
  return static_cast<int64_t>(entries(value, line).size());
}

Value Renderer::items(const Value& value, int line) const {
  Json out = Json::array();
  for (const auto& [key, member] : object_of(value, line, "\"items\""))
    out.push_back(Json::Array{key, member});
  return out;
}

Value Renderer::join(const Json::Array& all, const std::string& separator, int line) const {
  std::string out;
  bool first = true;
  for (const Json& entry : all) {
    if (!std::exchange(first, false)) out += separator;
    out += printed(entry, line);
    if (out.size() > kMaxText) refuse_size(line);
  }
  return Json(std::move(out));
}

Value Renderer::text_operation(const Expr& expr, const Json& value) {
  const std::string &name = expr.text, &text = value.as_string();
  count_characters(value, expr.line);
  if (name == "replace") return replace_text(expr, text);
  if (name == "lower") return Json(lower(text));
  if (name == "upper" || name == "title" || name == "capitalize") {
    if (!has_ascii_case(text))  // ASCII is enough: templates do this to roles
      refuse(expr.line, concat(quote(name), " of letters beyond ASCII is not supported"));
    if (name == "upper") return Json(upper(text));
    if (name == "capitalize") return Json(capitalized(text));
    return Json(expr.kind == Expr::kFilter ? titled_as_jinja(text) : titled(text));
  }
  const Side side = name == "lstrip" ? Side::kLeft : name == "rstrip" ? Side::kRight : Side::kBoth;
  return Json(strip(text, text_argument(expr, 1), side));  // trim and its variants
}

Value Renderer::replace_text(const Expr& expr, const std::string& text) {
  const auto part = [&](size_t i) {  // the filter converts anything to text
    const Value value = *argument(expr, i);
    return expr.kind == Expr::kFilter ? printed(value, expr.line)
                                      : text_of(value, expr.line, "\"replace\": its argument");
  };
  const std::string from = part(1), to = part(2);
  return Json(replace(text, from, to, integer_argument(expr, 3).value_or(-1)));
}

bool Renderer::test(const Expr& expr) {
  const Expr& operand = expr.children[0];
  Value value = eval(operand);
  // Functions are no values here, but they are defined.
  if (is_undefined(value) && operand.kind == Expr::kName && find_function(operand.text))
    value = Json(operand.text);
  const auto other = expr.children.size() > 1 ? std::optional(eval(expr.children[1])) : std::nullopt;
  return passes(expr.text, value, other, expr.line);
}

bool Renderer::passes(const std::string& test, const Value& value, const std::optional<Value>& argument,
                      int line) {
  using Test = bool (*)(const Json&);
  constexpr Test kIterable = [](const Json& x) { return x.is_array() || x.is_string() || x.is_object(); };
  static const std::map<std::string_view, Test> kTests = {
      {"boolean", [](const Json& x) { return x.is_bool(); }},
      {"false", [](const Json& x) { return x.is_bool() && !x.as_bool(); }},
      {"float", [](const Json& x) { return x.is_number() && !x.is_int(); }},
      {"integer", [](const Json& x) { return x.is_int(); }},
      {"iterable", kIterable},
      {"mapping", [](const Json& x) { return x.is_object(); }},
      {"none", [](const Json& x) { return x.is_null(); }},
      {"number", [](const Json& x) { return x.is_number() || x.is_bool(); }},
      {"sequence", kIterable},
      {"string", [](const Json& x) { return x.is_string(); }},
      {"true", [](const Json& x) { return x.is_bool() && x.as_bool(); }},
  };
  if (const char* const sign = sign_of_test(test)) {
    if (!argument) refuse(line, concat("the test ", quote(test), " is missing its argument"));
    return holds(sign, value, *argument, line);
  }
  if (test == "odd" || test == "even")
    return (integer_of(value, line, concat("the test ", quote(test))) % 2 != 0) == (test == "odd");
  if (test == "divisibleby" && argument) {
    const int64_t divisor = integer_of(*argument, line, "the test \"divisibleby\"");
    if (divisor == 0) refuse(line, "a division by zero");
    return divisor == -1 || integer_of(value, line, "the test \"divisibleby\"") % divisor == 0;
  }
  if (test == "defined") return !is_undefined(value);
  if (test == "undefined") return is_undefined(value);
  const auto found = kTests.find(test);
  if (found == kTests.end()) refuse(line, concat("the test ", quote(test), " is not supported"));
  if (is_undefined(value)) return found->second == kIterable;  // an undefined value is an empty list
  const Json* json = json_of(value);
  return json != nullptr && found->second(*json);
}

Value Renderer::indented(const Expr& expr, const Value& value) {
  const std::string text = printed(value, expr.line);
  std::string indent(4, ' ');
  if (const auto width = argument(expr, 1)) {
    constexpr int64_t kWidest = 1000;
    if (is_text(*width)) {
      indent = json_of(*width)->as_string();
    } else {
      const int64_t count = integer_of(*width, expr.line, "\"indent\"");
      if (count > kWidest) refuse(expr.line, concat("\"indent\" of more than ", kWidest));
      indent.assign(static_cast<size_t>(std::max<int64_t>(0, count)), ' ');
    }
  }
  const bool first = flag_argument(expr, 2), blank = flag_argument(expr, 3);
  std::string out;
  size_t line = 0;
  for (const std::string& part : megalith::split(text, '\n')) {
    if (line > 0) out += '\n';
    if ((line > 0 && (blank || !part.empty())) || (line == 0 && first)) out += indent;
    out += part;
    if (out.size() > kMaxText) refuse_size(expr.line);
    ++line;
  }
  return Json(std::move(out));
}

std::string Renderer::represented(const Json& value, int line) const {
  std::string out;
  const auto add = [&](const Json& entry) {
    out += entry.is_string() ? python_repr(entry.as_string()) : printed(entry, line);
    if (out.size() > kMaxText) refuse_size(line);
  };
  const char* separator = "";
  out += value.is_array() ? '[' : '{';
  if (value.is_array())
    for (const Json& entry : value.as_array()) {
      out += std::exchange(separator, ", ");
      add(entry);
    }
  else
    for (const auto& [key, member] : value.as_object()) {
      out += std::exchange(separator, ", ");
      add(Json(key));
      out += ": ";
      add(member);
    }
  return out + (value.is_array() ? ']' : '}');
}

/// The method "format" with "{}" and "{0}".
Value Renderer::formatted(const Expr& expr, const std::string& text) {
  std::string out;
  size_t next = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{' && text[i] != '}') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == text[i]) {
      out += text[i++];
      continue;
    }
    const size_t end = text.find('}', i);
    const std::string field = end == std::string::npos ? "?" : text.substr(i + 1, end - i - 1);
    const auto number = parse_int(field);
    const size_t at = field.empty() ? next++ : static_cast<size_t>(number.value_or(-1)) + 1;
    if (text[i] == '}' || (!field.empty() && (!number || *number < 0)) || at >= expr.children.size())
      refuse(expr.line,
             concat("the method \"format\" with the field ", quote("{" + field + "}"), " is not supported"));
    out += printed(eval(expr.children[at]), expr.line);
    if (out.size() > kMaxText) refuse_size(expr.line);
    i = end;
  }
  return Json(std::move(out));
}

const Json::Object& Renderer::object_of(const Value& value, int line, const std::string& what) const {
  const Json* json = json_of(value);
  if (json == nullptr || !json->is_object()) refuse(line, concat(what, " of ", kind_of(value)));
  return json->as_object();
}

Value Renderer::method(const Expr& expr) {
  const std::string& m = expr.text;
  const Value value = eval(expr.children[0]);
  if (m == "get") {
    object_of(value, expr.line, "\".get\"");
    const Json* found = json_of(value)->find(text_of(*argument(expr, 1), expr.line, "\".get\": the key"));
    return found ? Value(*found) : argument(expr, 2).value_or(Json());
  }
  if (m == "items") return items(value, expr.line);
  if (m == "keys" || m == "values") {
    Json out = Json::array();
    for (const auto& [key, member] : object_of(value, expr.line, quote(m)))
      out.push_back(m == "keys" ? Json(key) : member);
    return out;
  }
  text_of(value, expr.line, concat("the method ", quote(m)));
  return text_method(expr, *json_of(value));
}

Value Renderer::text_method(const Expr& expr, const Json& value) {
  const std::string &m = expr.text, &text = value.as_string();
  count_characters(value, expr.line);
  if (m == "startswith" || m == "endswith") {
    const std::string part = text_of(*argument(expr, 1), expr.line, concat(quote(m), ": its argument"));
    return Json(m == "endswith" ? text.ends_with(part) : text.starts_with(part));
  }
  if (m == "split") {
    const std::optional<std::string> separator = text_argument(expr, 1);
    if (separator && separator->empty()) refuse(expr.line, "\".split\" at an empty text");
    return list_of(split(text, separator, integer_argument(expr, 2).value_or(-1)));
  }
  if (m == "format") return formatted(expr, text);
  if (m == "find" || m == "count" || m == "removeprefix" || m == "removesuffix")
    return searched(expr, text, text_of(*argument(expr, 1), expr.line, concat(quote(m), ": its argument")));
  if (m == "rsplit" || m == "splitlines") return split_otherwise(expr, text);
  if (m == "join") {
    const Json::Array all = entries(*argument(expr, 1), expr.line);
    for (const Json& entry : all) text_of(entry, expr.line, "\".join\"");
    return join(all, text, expr.line);
  }
  return text_operation(expr, value);
}

/// The methods "find", "count", "removeprefix" and "removesuffix".
Value Renderer::searched(const Expr& expr, const std::string& text, const std::string& part) {
  const std::string& m = expr.text;
  if (m == "removeprefix") return Json(text.starts_with(part) ? text.substr(part.size()) : text);
  if (m == "removesuffix")
    return Json(text.ends_with(part) ? text.substr(0, text.size() - part.size()) : text);
  if (m == "find") {
    const size_t at = find_text(text, part);
    return Json(at == std::string_view::npos ? int64_t{-1} : count_code_points(text.substr(0, at)));
  }
  if (part.empty()) return Json(count_code_points(text) + 1);
  return Json(static_cast<int64_t>(split(text, part, -1).size()) - 1);
}

/// The methods "rsplit" and "splitlines".
Value Renderer::split_otherwise(const Expr& expr, const std::string& text) {
  if (expr.text == "splitlines") {
    if (text.find_first_of("\r\v\f") != std::string::npos)
      refuse(expr.line, "\".splitlines\" of a text with other line ends than \"\\n\" is not supported");
    std::vector<std::string> lines = megalith::split(text, '\n');
    if (lines.back().empty()) lines.pop_back();
    return list_of(lines);
  }
  const std::optional<std::string> separator = text_argument(expr, 1);
  const int64_t most = integer_argument(expr, 2).value_or(-1);
  if (!separator || separator->empty()) refuse(expr.line, "\".rsplit\" without a separator is not supported");
  std::vector<std::string> parts = split(text, separator, -1);
  const auto cuts = static_cast<int64_t>(parts.size()) - 1;
  if (most < 0 || cuts <= most) return list_of(parts);
  const auto rest = parts.begin() + static_cast<std::ptrdiff_t>(cuts - most) + 1;  // what is cut off
  std::vector<std::string> out{megalith::join({parts.begin(), rest}, *separator)};
  out.insert(out.end(), rest, parts.end());
  return list_of(out);
}

Value Renderer::call(const Expr& expr) {
  if (expr.text == "namespace") {
    auto space = std::make_shared<std::map<std::string, Json>>();
    for (const auto& [name, value] : expr.named) {
      const Json& member = (*space)[name] = json(value);
      count_kept(measure(&member, expr.line), expr.line);
    }
    return space;
  }
  if (expr.text == "range") return range(expr);
  const std::string text = text_of(*argument(expr, 0), expr.line, expr.text);
  if (expr.text == "raise_exception")
    fail(ErrorKind::kData, name_, ": the chat template refuses: ", printable(text, kMostReason));
  return now(expr, text);
}

/// strftime_now: the formats that C writes as Python does.
Value Renderer::now(const Expr& expr, const std::string& format) const {
  constexpr std::string_view kSame = "aAbBcdeHIjmMpSUwWxXyY%-";
  for (size_t i = format.find('%'); i != std::string::npos; i = format.find('%', i + 2))
    if (i + 1 == format.size() || kSame.find(format[i + 1]) == std::string_view::npos)
      refuse(expr.line, concat("\"strftime_now\" with ", quote(format.substr(i, 2)), " is not supported"));
  std::array<char, 4096> buffer{};
  const std::time_t seconds = std::time(nullptr);
  std::tm local{};
  localtime_r(&seconds, &local);
  const size_t size = std::strftime(buffer.data(), buffer.size(), format.c_str(), &local);
  if (size == 0 && !format.empty()) refuse(expr.line, "\"strftime_now\" with too long a format");
  return Json(std::string(buffer.data(), size));
}

Value Renderer::range(const Expr& expr) {
  constexpr size_t kMax = 100'000;
  std::vector<int64_t> bounds;
  for (size_t i = 0; i < expr.children.size(); ++i)
    if (const auto bound = argument(expr, i)) bounds.push_back(integer_of(*bound, expr.line, "\"range\""));
  const int64_t begin = bounds.size() > 1 ? bounds[0] : 0, end = bounds[bounds.size() > 1 ? 1 : 0],
                step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) refuse(expr.line, "\"range\" with step 0");
  Json out = Json::array();
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (out.as_array().size() == kMax) refuse(expr.line, "\"range\" is too long");
    out.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return out;
}

}  // namespace megalith::jinja
