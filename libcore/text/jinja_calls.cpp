#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/jinja_renderer.h"

namespace megalith::jinja {
namespace {

/// json.dumps with Python's separators; `indent` below 0: on one line.
void dump(const Json& value, int indent, int level, std::string& out) {
  const auto line = [&](int depth) {
    if (indent >= 0) out += concat("\n", std::string(static_cast<size_t>(indent * depth), ' '));
  };
  const auto members = [&](char open, char close, const auto& all, const auto& put) {
    out += open;
    bool first = true;
    for (const auto& member : all) {
      if (!first) out += indent >= 0 ? "," : ", ";
      first = false;
      line(level + 1);
      put(member);
    }
    if (!first) line(level);
    out += close;
  };
  if (value.is_array())
    return members('[', ']', value.as_array(),
                   [&](const Json& entry) { dump(entry, indent, level + 1, out); });
  if (value.is_object())
    return members('{', '}', value.as_object(), [&](const Json::Member& member) {
      out += concat(json_quote(member.first), ": ");
      dump(member.second, indent, level + 1, out);
    });
  out += value.dump();
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string replace_all(const std::string& text, const std::string& from, const std::string& to) {
  std::string out;
  size_t at = 0;
  for (size_t found = text.find(from); found != std::string::npos && !from.empty();
       found = text.find(from, at)) {
    out += concat(text.substr(at, found - at), to);
    at = found + from.size();
  }
  return out + text.substr(at);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}
std::string cased(std::string text, int (*change)(int)) {
  for (char& c : text) c = static_cast<char>(change(c));
  return text;
}
std::string titled(std::string text, bool every_word) {
  bool first = true;
  for (char& c : text) {
    const bool letter = std::isalpha(static_cast<unsigned char>(c)) != 0;
    if (letter) c = static_cast<char>(first ? std::toupper(c) : std::tolower(c));
    first = every_word ? !letter : false;
  }
  return text;
}

std::string strip(const std::string& text, const std::string& what, bool left, bool right) {
  const size_t begin = left ? text.find_first_not_of(what) : 0;
  if (begin == std::string::npos) return {};
  const size_t end = right ? text.find_last_not_of(what) : text.size() - 1;
  return end == std::string::npos ? std::string() : text.substr(begin, end + 1 - begin);
}

}  // namespace

std::optional<Value> Renderer::argument(const Expr& expr, size_t i, std::string_view name) {
  if (i < expr.children.size()) return eval(expr.children[i]);
  for (const auto& [given, value] : expr.named)
    if (given == name) return eval(value);
  return std::nullopt;
}

std::string Renderer::text_argument(const Expr& expr, size_t i, std::string_view name,
                                    const std::string& otherwise) {
  const std::optional<Value> value = argument(expr, i, name);
  return value ? text_of(*value, expr.line, concat(quote(expr.text), ": its argument")) : otherwise;
}

Value Renderer::filter(const Expr& expr) {
  const std::string& f = expr.text;
  const Value value = eval(expr.children[0]);
  if (f == "default" || f == "d") {
    const auto as_false = argument(expr, 2, "boolean");
    const bool replaced = is_undefined(value) || (as_false && truth(*as_false) && !truth(value));
    return replaced ? argument(expr, 1, "default_value").value_or(Json("")) : value;
  }
  if (f == "tojson") return to_json(expr, value);
  if (f == "length" || f == "count") return Json(length(value, expr.line));
  if (f == "string") return Json(printed(value, expr.line));
  if (f == "list") return Json(entries(value, expr.line));
  if (f == "items") return items(value, expr.line);
  if (f == "first" || f == "last") {
    const Json::Array all = entries(value, expr.line);
    if (all.empty()) return Undefined{};
    return f == "first" ? all.front() : all.back();
  }
  if (f == "join") return join(value, text_argument(expr, 1, "d", ""), expr.line);
  if (f == "int") {
    const Json* json = json_of(value);
    if (json && json->is_number()) return Json(static_cast<int64_t>(json->as_double()));
    return Json(parse_int(trim(text_of(value, expr.line, "\"int\""))).value_or(0));
  }
  return text_operation(expr, text_of(value, expr.line, concat("the filter ", quote(f))));
}

Value Renderer::to_json(const Expr& expr, const Value& value) {
  const Json* json = json_of(value);
  if (json == nullptr) refuse(expr.line, concat("\"tojson\" of ", kind_of(value)));
  const auto indent = argument(expr, 2, "indent");
  const bool wanted = indent && !(json_of(*indent) && json_of(*indent)->is_null());
  for (const auto& [name, given] : expr.named)
    if (name != "indent" && name != "ensure_ascii")
      refuse(expr.line, concat("\"tojson\" with ", quote(name), " is not supported"));
  std::string out;
  dump(*json, wanted ? static_cast<int>(integer_of(*indent, expr.line, "the indent")) : -1, 0, out);
  return Json(std::move(out));
}

int64_t Renderer::length(const Value& value, int line) const {
  if (is_text(value)) return static_cast<int64_t>(characters(json_of(value)->as_string()));
  return static_cast<int64_t>(entries(value, line).size());
}

Value Renderer::items(const Value& value, int line) const {
  const Json* json = json_of(value);
  if (json == nullptr || !json->is_object()) refuse(line, concat("\"items\" of ", kind_of(value)));
  Json out = Json::array();
  for (const auto& [key, member] : json->as_object()) out.push_back(Json::Array{key, member});
  return out;
}

Value Renderer::join(const Value& all, const std::string& separator, int line) const {
  std::string out;
  bool first = true;
  for (const Json& entry : entries(all, line)) {
    if (!std::exchange(first, false)) out += separator;
    out += printed(entry, line);
  }
  return Json(std::move(out));
}

Value Renderer::text_operation(const Expr& expr, const std::string& text) {
  const std::string& name = expr.text;
  const bool cases = name == "upper" || name == "lower" || name == "title" || name == "capitalize";
  if (cases && !is_ascii(text))  // templates do this with roles
    refuse(expr.line, concat(quote(name), " of letters beyond ASCII is not supported"));
  if (name == "upper") return Json(cased(text, std::toupper));
  if (name == "lower") return Json(cased(text, std::tolower));
  if (name == "title") return Json(titled(text, true));
  if (name == "capitalize") return Json(titled(text, false));
  if (name == "replace")
    return Json(replace_all(text, text_argument(expr, 1, "old", ""), text_argument(expr, 2, "new", "")));
  const std::string what = text_argument(expr, 1, "chars", " \t\n\r\f\v");  // trim and its kind
  return Json(strip(text, what, name != "rstrip", name != "lstrip"));
}

bool Renderer::test(const Expr& expr) {
  const std::string& t = expr.text;
  const Value value = eval(expr.children[0]);
  if (t == "odd" || t == "even")
    return (integer_of(value, expr.line, concat("the test ", quote(t))) % 2 != 0) == (t == "odd");
  const Json* json = json_of(value);
  if (t == "defined") return !is_undefined(value);
  if (t == "undefined") return is_undefined(value);
  if (json == nullptr) return false;
  if (t == "none") return json->is_null();
  if (t == "string") return json->is_string();
  if (t == "mapping") return json->is_object();
  if (t == "iterable" || t == "sequence") return json->is_array() || json->is_string() || json->is_object();
  if (t == "number") return json->is_number();
  if (t == "integer") return json->is_int();
  if (t == "boolean") return json->is_bool();
  return json->is_bool() && json->as_bool() == (t == "true");
}

Value Renderer::method(const Expr& expr) {
  const std::string& m = expr.text;
  const Value value = eval(expr.children[0]);
  const Json* json = json_of(value);
  if (m == "get") {
    if (json == nullptr || !json->is_object()) refuse(expr.line, concat("\".get\" of ", kind_of(value)));
    const Json* found = json->find(text_argument(expr, 1, "key", ""));
    return found ? Value(*found) : argument(expr, 2, "default").value_or(Json());
  }
  if (m == "items") return items(value, expr.line);
  if (m == "keys" || m == "values") {
    Json out = Json::array();
    for (const Json& pair : std::get<Json>(items(value, expr.line)).as_array())
      out.push_back(pair.as_array()[m == "keys" ? 0 : 1]);
    return out;
  }
  const std::string& text = text_of(value, expr.line, concat("the method ", quote(m)));
  if (m == "startswith") return Json(text.starts_with(text_argument(expr, 1, "prefix", "")));
  if (m == "endswith") return Json(text.ends_with(text_argument(expr, 1, "suffix", "")));
  if (m == "split") return split_text(expr, text);
  if (m == "join") return join(argument(expr, 1, "iterable").value_or(Undefined{}), text, expr.line);
  return text_operation(expr, text);
}

Value Renderer::split_text(const Expr& expr, const std::string& text) {
  const std::string separator = text_argument(expr, 1, "sep", "");
  if (separator.empty() || expr.children.size() > 2 || !expr.named.empty())
    refuse(expr.line, "\".split\" with other than one separator is not supported");
  Json out = Json::array();
  size_t at = 0;
  for (size_t found = text.find(separator); found != std::string::npos; found = text.find(separator, at)) {
    out.push_back(text.substr(at, found - at));
    at = found + separator.size();
  }
  out.push_back(text.substr(at));
  return out;
}

Value Renderer::call(const Expr& expr) {
  if (expr.text == "namespace") {
    auto space = std::make_shared<std::map<std::string, Json>>();
    for (const auto& [name, value] : expr.named) (*space)[name] = json(value);
    return space;
  }
  if (expr.text == "range") return range(expr);
  const std::string text =
      expr.children.empty() ? std::string() : text_of(eval(expr.children[0]), expr.line, expr.text);
  if (expr.text == "raise_exception") fail(ErrorKind::kData, name_, ": the chat template refuses: ", text);
  std::array<char, 256> buffer{};  // strftime_now
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return Json(std::string(buffer.data(), std::strftime(buffer.data(), buffer.size(), text.c_str(), &local)));
}

Value Renderer::range(const Expr& expr) {
  constexpr size_t kMost = 100'000;
  std::vector<int64_t> bounds;
  for (const Expr& child : expr.children) bounds.push_back(integer_of(eval(child), expr.line, "\"range\""));
  if (bounds.empty() || bounds.size() > 3) refuse(expr.line, "\"range\" takes one to three numbers");
  const int64_t begin = bounds.size() > 1 ? bounds[0] : 0, end = bounds[bounds.size() > 1 ? 1 : 0],
                step = bounds.size() > 2 ? bounds[2] : 1;
  if (step == 0) refuse(expr.line, "\"range\" with step 0");
  Json out = Json::array();
  for (int64_t i = begin; step > 0 ? i < end : i > end;) {
    if (out.as_array().size() == kMost) refuse(expr.line, "\"range\" is too long");
    out.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return out;
}

}  // namespace megalith::jinja
