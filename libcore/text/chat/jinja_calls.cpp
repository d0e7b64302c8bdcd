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
  };
  const Value value = eval(expr.children[0]);
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
    if (!is_ascii(text))  // ASCII is enough: templates do this to roles
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
  using Test = bool (*)(const Json&);
  constexpr Test kIterable = [](const Json& x) { return x.is_array() || x.is_string() || x.is_object(); };
  static const std::map<std::string_view, Test> kTests = {
      {"boolean", [](const Json& x) { return x.is_bool(); }},
      {"false", [](const Json& x) { return x.is_bool() && !x.as_bool(); }},
      {"integer", [](const Json& x) { return x.is_int(); }},
      {"iterable", kIterable},
      {"mapping", [](const Json& x) { return x.is_object(); }},
      {"none", [](const Json& x) { return x.is_null(); }},
      {"number", [](const Json& x) { return x.is_number() || x.is_bool(); }},
      {"sequence", kIterable},
      {"string", [](const Json& x) { return x.is_string(); }},
      {"true", [](const Json& x) { return x.is_bool() && x.as_bool(); }},
  };
  const std::string& t = expr.text;
  const Value value = eval(expr.children[0]);
  if (t == "odd" || t == "even")
    return (integer_of(value, expr.line, concat("the test ", quote(t))) % 2 != 0) == (t == "odd");
  if (t == "defined") return !is_undefined(value);
  if (t == "undefined") return is_undefined(value);
  const Test is = kTests.at(t);                     // never missing: the parser accepts only these names
  if (is_undefined(value)) return is == kIterable;  // an undefined value is an empty list
  const Json* json = json_of(value);
  return json != nullptr && is(*json);
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
  if (m == "join") {
    const Json::Array all = entries(*argument(expr, 1), expr.line);
    for (const Json& entry : all) text_of(entry, expr.line, "\".join\"");
    return join(all, text, expr.line);
  }
  return text_operation(expr, value);
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
