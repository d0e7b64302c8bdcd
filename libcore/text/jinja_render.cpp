#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <variant>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/jinja.h"

namespace megalith::jinja {
namespace {

constexpr int64_t kMostSteps = 2'000'000;  // of a template that never ends
constexpr size_t kMostText = size_t{64} << 20;

struct Undefined {};
using Namespace = std::shared_ptr<std::map<std::string, Json>>;

/// Undefined, a namespace, or a value as in JSON (None is null).
using Value = std::variant<Undefined, Json, Namespace>;

bool is_undefined(const Value& value) {
  return std::holds_alternative<Undefined>(value);
}
const Json* json_of(const Value& value) {
  return std::get_if<Json>(&value);
}
bool is_text(const Value& value) {
  const Json* json = json_of(value);
  return json != nullptr && json->is_string();
}

/// As Python's bool().
bool truth(const Value& value) {
  const Json* json = json_of(value);
  if (json == nullptr) return !is_undefined(value);
  if (json->is_bool()) return json->as_bool();
  if (json->is_number()) return json->as_double() != 0;
  if (json->is_string()) return !json->as_string().empty();
  if (json->is_array()) return !json->as_array().empty();
  if (json->is_object()) return !json->as_object().empty();
  return false;
}

bool equal(const Value& a, const Value& b) {
  const Json *x = json_of(a), *y = json_of(b);
  if (x == nullptr || y == nullptr) return is_undefined(a) && is_undefined(b);
  if (x->is_number() && y->is_number()) return x->as_double() == y->as_double();
  return *x == *y;
}

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

/// The characters of a text, as Python's indices and loops see them.
std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> out;
  for (const char c : text) {
    if ((c & 0xc0) != 0x80 || out.empty()) out.emplace_back();
    out.back() += c;
  }
  return out;
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

/// One rendering.
class Renderer {
 public:
  Renderer(const Json::Object& variables, const std::string& name) : name_(name) {
    scopes_.emplace_back();
    for (const auto& [key, value] : variables) scopes_.back()[key] = value;
  }
  std::string run(const std::vector<Node>& nodes) {
    execute(nodes);
    return std::move(out_);
  }

 private:
  using Scope = std::map<std::string, Value>;
  enum class Flow { kOn, kBreak, kContinue };

  [[noreturn]] void refuse(int line, const std::string& what) const {
    fail(ErrorKind::kData, name_, ": chat template, line ", line, ": ", what);
  }
  static std::string kind_of(const Value& value) {
    const Json* json = json_of(value);
    if (json == nullptr) return is_undefined(value) ? "an undefined value" : "a namespace";
    return json->is_null()     ? "none"
           : json->is_bool()   ? "a truth value"
           : json->is_number() ? "a number"
           : json->is_string() ? "a text"
           : json->is_array()  ? "a list"
                               : "a mapping";
  }
  const std::string& text_of(const Value& value, int line, const std::string& what) const {
    if (!is_text(value)) refuse(line, concat(what, " of ", kind_of(value), ", wanted a text"));
    return json_of(value)->as_string();
  }
  int64_t integer_of(const Value& value, int line, const std::string& what) const {
    const Json* json = json_of(value);
    if (json == nullptr || !json->is_int())
      refuse(line, concat(what, " of ", kind_of(value), ", wanted an integer"));
    return json->as_int();
  }
  void count_step(int line) {
    if (++steps_ > kMostSteps || out_.size() > kMostText)
      refuse(line, "the template does not come to an end");
  }

  // ---- blocks

  Flow execute(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      const Flow flow = execute(node);
      if (flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

  Flow execute(const Node& node) {
    count_step(node.line);
    switch (node.kind) {
      case Node::kText:
        out_ += node.text;
        return Flow::kOn;
      case Node::kOutput:
        out_ += printed(eval(node.exprs[0]), node.line);
        return Flow::kOn;
      case Node::kSet:
        set(node, eval(node.exprs[0]));
        return Flow::kOn;
      case Node::kSetBlock:
        return capture(node);
      case Node::kIf:
        return choose(node);
      case Node::kFor:
        return loop(node);
      case Node::kBreak:
        return Flow::kBreak;
      case Node::kContinue:
        return Flow::kContinue;
      case Node::kGroup:
        return execute(node.bodies[0]);
    }
    return Flow::kOn;
  }

  void set(const Node& node, Value value) {
    if (node.names.size() == 1) {
      scopes_.back()[node.names[0]] = std::move(value);
      return;
    }
    const Value target = look_up(node.names[0]);
    const Namespace* space = std::get_if<Namespace>(&target);
    if (space == nullptr)
      refuse(node.line, concat(quote(node.names[0]), " is no namespace, so it has no member to set"));
    const Json* json = json_of(value);
    if (json == nullptr) refuse(node.line, concat("a namespace cannot hold ", kind_of(value)));
    (**space)[node.names[1]] = *json;
  }

  Flow capture(const Node& node) {
    std::string before = std::exchange(out_, {});
    const Flow flow = execute(node.bodies[0]);
    std::string made = std::exchange(out_, std::move(before));
    set(node, Json(std::move(made)));
    return flow;
  }

  Flow choose(const Node& node) {
    for (size_t i = 0; i < node.exprs.size(); ++i)
      if (truth(eval(node.exprs[i]))) return execute(node.bodies[i]);
    return node.bodies.size() > node.exprs.size() ? execute(node.bodies.back()) : Flow::kOn;
  }

  void bind(const Node& node, const Json& entry) {
    if (node.names.size() == 1) {
      scopes_.back()[node.names[0]] = entry;
      return;
    }
    if (!entry.is_array() || entry.as_array().size() != node.names.size())
      refuse(node.line, concat("cannot take ", node.names.size(), " variables from ", kind_of(entry)));
    for (size_t i = 0; i < node.names.size(); ++i) scopes_.back()[node.names[i]] = entry.as_array()[i];
  }

  /// What the loop goes over, without what its condition leaves out.
  Json::Array loop_entries(const Node& node) {
    Json::Array all = entries(eval(node.exprs[0]), node.line);
    if (node.exprs.size() == 1) return all;
    Json::Array kept;
    for (Json& entry : all) {
      scopes_.emplace_back();
      bind(node, entry);
      if (truth(eval(node.exprs[1]))) kept.push_back(std::move(entry));
      scopes_.pop_back();
    }
    return kept;
  }

  Flow loop(const Node& node) {
    const Json::Array all = loop_entries(node);
    if (all.empty() && node.bodies.size() > 1) return execute(node.bodies[1]);
    const auto length = static_cast<int64_t>(all.size());
    for (int64_t i = 0; i < length; ++i) {
      count_step(node.line);
      scopes_.emplace_back();
      bind(node, all[static_cast<size_t>(i)]);
      Json::Object state{{"index", i + 1},
                         {"index0", i},
                         {"first", i == 0},
                         {"last", i + 1 == length},
                         {"length", length},
                         {"revindex", length - i},
                         {"revindex0", length - i - 1}};
      if (i > 0) state.emplace_back("previtem", all[static_cast<size_t>(i - 1)]);
      if (i + 1 < length) state.emplace_back("nextitem", all[static_cast<size_t>(i + 1)]);
      scopes_.back()["loop"] = Json(std::move(state));
      const Flow flow = execute(node.bodies[0]);
      scopes_.pop_back();
      if (flow == Flow::kBreak) break;
    }
    return Flow::kOn;
  }

  // ---- values

  Value look_up(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return found->second;
    return Undefined{};
  }

  std::string printed(const Value& value, int line) const {
    if (is_undefined(value)) return {};
    const Json* json = json_of(value);
    if (json == nullptr || json->is_array() || json->is_object())
      refuse(line, concat("cannot print ", kind_of(value), "; use the filter tojson"));
    if (json->is_string()) return json->as_string();
    if (json->is_bool()) return json->as_bool() ? "True" : "False";
    if (json->is_null()) return "None";
    if (json->is_int()) return concat(json->as_int());
    std::string text = format_double(json->as_double());
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }

  /// What a loop over a value goes through.
  Json::Array entries(const Value& value, int line) const {
    Json::Array out;
    if (is_undefined(value)) return out;
    const Json* json = json_of(value);
    if (json != nullptr && json->is_array()) return json->as_array();
    if (json != nullptr && json->is_object()) {
      for (const auto& [key, member] : json->as_object()) out.emplace_back(key);
      return out;
    }
    if (json == nullptr || !json->is_string()) refuse(line, concat("cannot loop over ", kind_of(value)));
    for (std::string& character : characters_of(json->as_string())) out.emplace_back(std::move(character));
    return out;
  }

  Value member(const Value& value, const std::string& key, int line) const {
    if (is_undefined(value)) refuse(line, concat("the member ", quote(key), " of an undefined value"));
    if (const Namespace* space = std::get_if<Namespace>(&value)) {
      const auto found = (*space)->find(key);
      return found == (*space)->end() ? Value(Undefined{}) : Value(found->second);
    }
    const Json* found = json_of(value)->find(key);
    return found ? Value(*found) : Value(Undefined{});
  }

  Value item(const Value& value, const Value& index, int line) const {
    if (is_text(index)) return member(value, json_of(index)->as_string(), line);
    const Json* json = json_of(value);
    if (json == nullptr || !(json->is_array() || json->is_string()))
      refuse(line, concat("an item of ", kind_of(value)));
    const Json::Array all = entries(value, line);
    const auto size = static_cast<int64_t>(all.size());
    int64_t at = integer_of(index, line, "the index");
    if (at < 0) at += size;
    return at >= 0 && at < size ? Value(all[static_cast<size_t>(at)]) : Value(Undefined{});
  }

  /// Python's slices.
  Value slice(const Expr& expr) {
    const Value value = eval(expr.children[0]);
    const Json* json = json_of(value);
    if (json == nullptr || !(json->is_array() || json->is_string()))
      refuse(expr.line, concat("a slice of ", kind_of(value)));
    const Json::Array all = entries(value, expr.line);
    const auto size = static_cast<int64_t>(all.size());
    const auto part = [&](size_t i) -> std::optional<int64_t> {
      if (expr.children[i].kind == Expr::kAbsent) return std::nullopt;
      return integer_of(eval(expr.children[i]), expr.line, "the bound");
    };
    const int64_t step = part(3).value_or(1);
    if (step == 0) refuse(expr.line, "a slice of step 0");
    const auto bound = [&](std::optional<int64_t> given, int64_t otherwise) {
      if (!given) return otherwise;
      const int64_t at = *given < 0 ? *given + size : *given;
      return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
    };
    const int64_t begin = bound(part(1), step > 0 ? 0 : size - 1), end = bound(part(2), step > 0 ? size : -1);
    Json::Array out;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step)
      out.push_back(all[static_cast<size_t>(i)]);
    if (json->is_array()) return Json(std::move(out));
    std::string text;
    for (const Json& character : out) text += character.as_string();
    return Json(std::move(text));
  }

  Value eval(const Expr& expr) {
    count_step(expr.line);
    switch (expr.kind) {
      case Expr::kLiteral:
        return expr.literal;
      case Expr::kName:
        return look_up(expr.text);
      case Expr::kMember:
        return member(eval(expr.children[0]), expr.text, expr.line);
      case Expr::kItem:
        return item(eval(expr.children[0]), eval(expr.children[1]), expr.line);
      case Expr::kSlice:
        return slice(expr);
      case Expr::kAbsent:
        return Undefined{};
      case Expr::kList:
      case Expr::kDict:
        return collection(expr);
      case Expr::kNot:
        return Json(!truth(eval(expr.children[0])));
      case Expr::kNegative:
        return negative(expr);
      case Expr::kAnd: {
        Value left = eval(expr.children[0]);
        return truth(left) ? eval(expr.children[1]) : left;
      }
      case Expr::kOr: {
        Value left = eval(expr.children[0]);
        return truth(left) ? left : eval(expr.children[1]);
      }
      case Expr::kBinary:
        return binary(expr);
      case Expr::kCondition:
        return eval(expr.children[truth(eval(expr.children[1])) ? 0 : 2]);
      case Expr::kFilter:
        return filter(expr);
      case Expr::kTest:
        return Json(test(expr));
      case Expr::kMethod:
        return method(expr);
      case Expr::kCall:
        return call(expr);
    }
    return Undefined{};
  }

  Json json(const Expr& expr) {
    const Value value = eval(expr);
    if (const Json* json = json_of(value)) return *json;
    refuse(expr.line, concat(kind_of(value), " cannot stand here"));
  }

  Value collection(const Expr& expr) {
    if (expr.kind == Expr::kList) {
      Json list = Json::array();
      for (const Expr& child : expr.children) list.push_back(json(child));
      return list;
    }
    Json map = Json::object();
    for (size_t i = 0; i < expr.children.size(); i += 2)
      map.set(text_of(eval(expr.children[i]), expr.line, "the key"), json(expr.children[i + 1]));
    return map;
  }

  Value negative(const Expr& expr) {
    const Json value = json(expr.children[0]);
    if (value.is_int()) return Json(-value.as_int());
    if (!value.is_number()) refuse(expr.line, concat("the negative of ", kind_of(value)));
    return Json(-value.as_double());
  }

  bool contains(const Value& all, const Value& one, int line) const {
    const Json* json = json_of(all);
    if (json != nullptr && json->is_string())
      return json->as_string().find(text_of(one, line, "\"in\"")) != std::string::npos;
    if (json != nullptr && json->is_object()) return is_text(one) && json->find(json_of(one)->as_string());
    const Json::Array entries = this->entries(all, line);
    return std::any_of(entries.begin(), entries.end(), [&](const Json& entry) { return equal(entry, one); });
  }

  Value binary(const Expr& expr) {
    const std::string& sign = expr.text;
    const Value left = eval(expr.children[0]), right = eval(expr.children[1]);
    if (sign == "==") return Json(equal(left, right));
    if (sign == "!=") return Json(!equal(left, right));
    if (sign == "in") return Json(contains(right, left, expr.line));
    if (sign == "not in") return Json(!contains(right, left, expr.line));
    if (sign == "~") return Json(printed(left, expr.line) + printed(right, expr.line));
    const Json *x = json_of(left), *y = json_of(right);
    const bool numbers = x && y && x->is_number() && y->is_number();
    if (sign[0] == '<' || sign[0] == '>') {
      if (!numbers && !(is_text(left) && is_text(right))) refuse_operands(expr, left, right);
      const bool less = numbers ? x->as_double() < y->as_double() : x->as_string() < y->as_string();
      if (sign == "<") return Json(less);
      if (sign == ">=") return Json(!less);
      return Json(sign == ">" ? !less && !equal(left, right) : less || equal(left, right));
    }
    if (sign == "+" && is_text(left) && is_text(right)) return Json(x->as_string() + y->as_string());
    if (sign == "+" && x && y && x->is_array() && y->is_array()) {
      Json::Array all = x->as_array();
      all.insert(all.end(), y->as_array().begin(), y->as_array().end());
      return Json(std::move(all));
    }
    if (!numbers) refuse_operands(expr, left, right);
    return arithmetic(expr, *x, *y);
  }

  [[noreturn]] void refuse_operands(const Expr& expr, const Value& left, const Value& right) const {
    refuse(expr.line, concat(quote(expr.text), " of ", kind_of(left), " and ", kind_of(right)));
  }

  Value arithmetic(const Expr& expr, const Json& x, const Json& y) const {
    const char sign = expr.text[0];
    const bool floor = expr.text == "//";
    if ((sign == '/' || sign == '%') && y.as_double() == 0) refuse(expr.line, "a division by zero");
    if (x.is_int() && y.is_int() && (sign != '/' || floor)) {
      const int64_t a = x.as_int(), b = y.as_int();
      int64_t out = 0;
      bool overflow = (sign == '/' || sign == '%') && b == -1;  // the least number has no negative
      if (sign == '+') overflow = __builtin_add_overflow(a, b, &out);
      if (sign == '-') overflow = __builtin_sub_overflow(a, b, &out);
      if (sign == '*') overflow = __builtin_mul_overflow(a, b, &out);
      if (overflow) refuse(expr.line, "a number too large");
      if (sign == '/') out = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
      if (sign == '%') out = a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0);
      return Json(out);
    }
    const double a = x.as_double(), b = y.as_double();
    if (sign == '+') return Json(a + b);
    if (sign == '-') return Json(a - b);
    if (sign == '*') return Json(a * b);
    if (sign == '/') return Json(floor ? std::floor(a / b) : a / b);
    return Json(a - b * std::floor(a / b));
  }

  // ---- filters, tests, methods, functions

  /// Argument `i` of a call, given by place or by name; absent: nothing.
  std::optional<Value> argument(const Expr& expr, size_t i, std::string_view name) {
    if (i < expr.children.size()) return eval(expr.children[i]);
    for (const auto& [given, value] : expr.named)
      if (given == name) return eval(value);
    return std::nullopt;
  }
  std::string text_argument(const Expr& expr, size_t i, std::string_view name, const std::string& otherwise) {
    const std::optional<Value> value = argument(expr, i, name);
    return value ? text_of(*value, expr.line, concat(quote(expr.text), ": its argument")) : otherwise;
  }

  Value filter(const Expr& expr) {
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

  Value to_json(const Expr& expr, const Value& value) {
    const Json* json = json_of(value);
    if (json == nullptr) refuse(expr.line, concat("\"tojson\" of ", kind_of(value)));
    const auto indent = argument(expr, 3, "indent");
    const bool wanted = indent && !(json_of(*indent) && json_of(*indent)->is_null());
    for (const auto& [name, given] : expr.named)
      if (name != "indent" && name != "ensure_ascii")
        refuse(expr.line, concat("\"tojson\" with ", quote(name), " is not supported"));
    std::string out;
    dump(*json, wanted ? static_cast<int>(integer_of(*indent, expr.line, "the indent")) : -1, 0, out);
    return Json(std::move(out));
  }

  int64_t length(const Value& value, int line) const {
    if (is_text(value)) return static_cast<int64_t>(characters(json_of(value)->as_string()));
    return static_cast<int64_t>(entries(value, line).size());
  }

  Value items(const Value& value, int line) const {
    const Json* json = json_of(value);
    if (json == nullptr || !json->is_object()) refuse(line, concat("\"items\" of ", kind_of(value)));
    Json out = Json::array();
    for (const auto& [key, member] : json->as_object()) out.push_back(Json::Array{key, member});
    return out;
  }

  Value join(const Value& all, const std::string& separator, int line) const {
    std::string out;
    bool first = true;
    for (const Json& entry : entries(all, line)) {
      if (!std::exchange(first, false)) out += separator;
      out += printed(entry, line);
    }
    return Json(std::move(out));
  }

  /// What filters and methods do alike with a text.
  Value text_operation(const Expr& expr, const std::string& text) {
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

  bool test(const Expr& expr) {
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

  Value method(const Expr& expr) {
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

  Value split_text(const Expr& expr, const std::string& text) {
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

  Value call(const Expr& expr) {
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
    return Json(
        std::string(buffer.data(), std::strftime(buffer.data(), buffer.size(), text.c_str(), &local)));
  }

  Value range(const Expr& expr) {
    constexpr size_t kMost = 100'000;
    std::vector<int64_t> bounds;
    for (const Expr& child : expr.children) bounds.push_back(integer_of(eval(child), expr.line, "\"range\""));
    if (bounds.empty() || bounds.size() > 3) refuse(expr.line, "\"range\" takes one to three numbers");
    const int64_t begin = bounds.size() > 1 ? bounds[0] : 0, end = bounds[bounds.size() > 1 ? 1 : 0],
                  step = bounds.size() > 2 ? bounds[2] : 1;
    if (step == 0) refuse(expr.line, "\"range\" with step 0");
    Json out = Json::array();
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
      if (out.as_array().size() == kMost) refuse(expr.line, "\"range\" is too long");
      out.push_back(i);
    }
    return out;
  }

  const std::string& name_;
  std::vector<Scope> scopes_;
  std::string out_;
  int64_t steps_ = 0;
};

}  // namespace

std::string render(const std::vector<Node>& nodes, const Json::Object& variables, const std::string& name) {
  return Renderer(variables, name).run(nodes);
}

}  // namespace megalith::jinja
