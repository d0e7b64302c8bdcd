#include <algorithm>
#include <cmath>
#include <iterator>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/chat/jinja_renderer.h"
#include "libcore/text/chat/jinja_signatures.h"
#include "libcore/text/chat/jinja_text.h"

namespace megalith::jinja {
namespace {

bool are_numbers(const Json* x, const Json* y) {
  return x != nullptr && y != nullptr && x->is_number() && y->is_number();
}

}  // namespace

Value Renderer::look_up(const std::string& name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
    if (const auto found = scope->find(name); found != scope->end()) return found->second;
  return Undefined{};
}

std::string Renderer::printed(const Value& value, int line) const {
  if (is_undefined(value)) return {};
  const Json* json = json_of(value);
  if (json == nullptr) refuse(line, concat("cannot print ", kind_of(value)));
  if (json->is_array() || json->is_object()) return represented(*json, line);
  if (json->is_string()) return json->as_string();
  if (json->is_bool()) return json->as_bool() ? "True" : "False";
  if (json->is_null()) return "None";
  if (json->is_int()) return concat(json->as_int());
  return python_float(json->as_double());
}

Json::Array Renderer::entries(const Value& value, int line) {
  Json::Array out;
  if (is_undefined(value)) return out;
  const Json* json = json_of(value);
  if (json != nullptr && json->is_array()) return json->as_array();
  if (json != nullptr && json->is_object()) {
    for (const auto& [key, member] : json->as_object()) out.emplace_back(key);
    return out;
  }
  if (json == nullptr || !json->is_string()) refuse(line, concat("cannot loop over ", kind_of(value)));
  if (json->as_string().size() > Extent::kMaxBytes / sizeof(Json)) refuse_size(line);
  count_characters(*json, line);
  for (std::string& character : characters_of(json->as_string())) out.emplace_back(std::move(character));
  return out;
}

Value Renderer::member(const Value& value, const std::string& key, Access access, int line) const {
  if (is_undefined(value)) refuse(line, concat("the member ", quote(key), " of an undefined value"));
  if (const Namespace* space = std::get_if<Namespace>(&value)) {
    const auto found = (*space)->find(key);
    return found == (*space)->end() ? Value(Undefined{}) : Value(found->second);
  }
  if (json_of(value) == nullptr) refuse(line, concat("the member ", quote(key), " of ", kind_of(value)));
  const Json& json = *json_of(value);
  const Json* found = json.find(key);
  if ((access == Access::kAttribute || !found) && is_python_attribute(json, key))
    refuse(line,
           concat("the attribute ", quote(key), " of ", kind_of(value), " without a call is not supported"));
  return found ? Value(*found) : Value(Undefined{});
}

void Renderer::count_characters(const Json& text, int line) {
  constexpr size_t kSlower = 16;  // factor by which visiting characters is slower than copying
  count_step(line, kSlower * text.as_string().size());
}

std::vector<uint32_t> Renderer::begins_of(const Json& text, int line) {
  count_characters(text, line);
  return character_begins(text.as_string());
}

Renderer::Sequence Renderer::sequence_of(const Value& value, int line, const char* what) {
  const Json* json = json_of(value);
  if (json == nullptr || !(json->is_array() || json->is_string()))
    refuse(line, concat(what, " of ", kind_of(value)));
  Sequence out{.json = *json, .begins = {}, .size = 0};
  if (json->is_string()) out.begins = begins_of(*json, line);
  out.size = static_cast<int64_t>(json->is_string() ? out.begins.size() - 1 : json->as_array().size());
  return out;
}

Value Renderer::item(const Value& value, const Value& index, int line) {
  if (is_text(index)) return member(value, json_of(index)->as_string(), Access::kMember, line);
  const Sequence all = sequence_of(value, line, "an item");
  const int64_t given = integer_of(index, line, "the index");
  const int64_t at = given < 0 ? given + all.size : given;
  if (at < 0 || at >= all.size) return Undefined{};
  if (all.json.is_array()) return all.json.as_array()[static_cast<size_t>(at)];
  return Json(std::string(all.character(at)));
}

/// The indices that a slice of a sequence of `size` entries takes: begin, begin + step, and so on, before
/// `end`.
Renderer::Places Renderer::places_of(const Expr& slice, int64_t size) {
  const auto part = [&](size_t i) -> std::optional<int64_t> {
    if (slice.children[i].kind == Expr::kAbsent) return std::nullopt;
    return integer_of(eval(slice.children[i]), slice.line, "the bound");
  };
  // Limits the step: any step beyond the end has the same effect, and this one does not overflow.
  const int64_t step = std::clamp(part(3).value_or(1), -size - 1, size + 1);
  if (step == 0) refuse(slice.line, "a slice of step 0");
  const int64_t min_bound = step > 0 ? 0 : -1, max_bound = step > 0 ? size : size - 1;
  const auto bound = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, min_bound, max_bound);
  };
  const int64_t begin = bound(part(1), step > 0 ? min_bound : max_bound);
  return {.begin = begin, .end = bound(part(2), step > 0 ? max_bound : min_bound), .step = step};
}

Value Renderer::slice(const Expr& expr) {
  const Value value = eval(expr.children[0]);
  const Sequence all = sequence_of(value, expr.line, "a slice");
  const Places places = places_of(expr, all.size);
  Json::Array entries;
  std::string text;
  for (int64_t at = places.begin; places.step > 0 ? at < places.end : at > places.end; at += places.step) {
    if (all.json.is_array())
      entries.push_back(all.json.as_array()[static_cast<size_t>(at)]);
    else
      text += all.character(at);
  }
  return all.json.is_array() ? Json(std::move(entries)) : Json(std::move(text));
}

Value Renderer::eval(const Expr& expr) {
  Value value = value_of(expr);
  count_step(expr.line, measure(json_of(value), expr.line));
  return value;
}

Value Renderer::value_of(const Expr& expr) {
  switch (expr.kind) {
    case Expr::kLiteral:
      return expr.literal;
    case Expr::kName:
      return look_up(expr.text);
    case Expr::kMember:
      return member(eval(expr.children[0]), expr.text, Access::kAttribute, expr.line);
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
    case Expr::kComparison:
      return Json(comparison(expr));
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
    case Expr::kMacro:
      return call_macro(expr);
    case Expr::kRefused:
      refuse(expr.line, expr.text);
  }
  return Undefined{};
}

Json Renderer::json(const Expr& expr) {
  const Value value = eval(expr);
  if (const Json* json = json_of(value)) return *json;
  refuse(expr.line, concat(kind_of(value), " is not allowed here"));
}

/// Returns `value`, a new entry of a collection whose entries take `bytes` so far, and adds its size to
/// `bytes`.
Json Renderer::add_to(size_t& bytes, Json value, int line) const {
  bytes += measure(&value, line);
  if (bytes > Extent::kMaxBytes) refuse_size(line);
  return value;
}

Value Renderer::collection(const Expr& expr) {
  size_t bytes = 0;
  if (expr.kind == Expr::kList) {
    Json list = Json::array();
    for (const Expr& child : expr.children) list.push_back(add_to(bytes, json(child), expr.line));
    return list;
  }
  Json map = Json::object();
  for (size_t i = 0; i < expr.children.size(); i += 2) {
    const Json key = add_to(bytes, json(expr.children[i]), expr.line);
    map.set(text_of(key, expr.line, "the key"), add_to(bytes, json(expr.children[i + 1]), expr.line));
  }
  return map;
}

Value Renderer::negative(const Expr& expr) {
  const Json value = json(expr.children[0]);
  if (int64_t result; value.is_int()) {
    if (__builtin_sub_overflow(int64_t{0}, value.as_int(), &result))
      refuse(expr.line, "a number that is too large");
    return Json(result);
  }
  if (!value.is_number()) refuse(expr.line, concat("the negative of ", kind_of(value)));
  return Json(-value.as_double());
}

bool Renderer::contains(const Value& all, const Value& one, int line) {
  const Json* json = json_of(all);
  if (json != nullptr && json->is_string())
    return find_text(json->as_string(), text_of(one, line, "\"in\"")) != std::string_view::npos;
  if (json != nullptr && json->is_object()) return is_text(one) && json->find(json_of(one)->as_string());
  const Json::Array entries = this->entries(all, line);
  return std::any_of(entries.begin(), entries.end(), [&](const Json& entry) { return equal(entry, one); });
}

bool Renderer::comparison(const Expr& expr) {
  Value left = eval(expr.children[0]);
  for (const auto& [sign, operand] : expr.named) {
    Value right = eval(operand);
    if (!holds(sign, left, right, expr.line)) return false;
    left = std::move(right);
  }
  return true;
}

bool Renderer::is_less(const std::string& sign, const Value& left, const Value& right, int line) const {
  const Json *x = json_of(left), *y = json_of(right);
  if (is_text(left) && is_text(right)) return x->as_string() < y->as_string();
  if (!are_numbers(x, y)) refuse_operands(sign, left, right, line);
  return x->is_int() && y->is_int() ? x->as_int() < y->as_int() : x->as_double() < y->as_double();
}

bool Renderer::holds(const std::string& sign, const Value& left, const Value& right, int line) {
  if (sign == "==") return equal(left, right);
  if (sign == "!=") return !equal(left, right);
  if (sign == "in") return contains(right, left, line);
  if (sign == "not in") return !contains(right, left, line);
  const bool less = is_less(sign, left, right, line);
  if (sign == "<") return less;
  if (sign == ">=") return !less;
  const bool less_or_equal = less || equal(left, right);
  return sign == ">" ? !less_or_equal : less_or_equal;
}

Value Renderer::binary(const Expr& expr) {
  const std::string& sign = expr.text;
  const Value left = eval(expr.children[0]), right = eval(expr.children[1]);
  if (sign == "~") return Json(printed(left, expr.line) + printed(right, expr.line));
  const Json *x = json_of(left), *y = json_of(right);
  if (sign == "+" && is_text(left) && is_text(right)) return Json(x->as_string() + y->as_string());
  if (sign == "+" && x && y && x->is_array() && y->is_array()) {
    Json::Array all = x->as_array();
    all.insert(all.end(), y->as_array().begin(), y->as_array().end());
    return Json(std::move(all));
  }
  if (sign == "*" && is_text(left) && y && y->is_int())
    return repeated(x->as_string(), y->as_int(), expr.line);
  if (sign == "*" && is_text(right) && x && x->is_int())
    return repeated(y->as_string(), x->as_int(), expr.line);
  if (!are_numbers(x, y)) refuse_operands(sign, left, right, expr.line);
  return arithmetic(expr, *x, *y);
}

Value Renderer::repeated(const std::string& text, int64_t times, int line) const {
  if (times <= 0 || text.empty()) return Json(std::string());
  if (static_cast<uint64_t>(times) > kMaxText / text.size()) refuse_size(line);
  std::string all;
  for (int64_t i = 0; i < times; ++i) all += text;
  return Json(std::move(all));
}

void Renderer::refuse_operands(const std::string& sign, const Value& left, const Value& right,
                               int line) const {
  refuse(line, concat(quote(sign), " of ", kind_of(left), " and ", kind_of(right)));
}

namespace {

/// An operator: `integers` computes it for two integers and returns false if the result is too large (null if
/// the result is not an integer); `numbers` computes it for other numbers.
struct Operation {
  std::string_view sign;
  bool (*integers)(int64_t a, int64_t b, int64_t& out);
  double (*numbers)(double a, double b);
  bool divides = false;
};

// Python rounds quotients down. The processor does not divide the lowest integer by -1: it has no negative.
bool floor_quotient(int64_t a, int64_t b, int64_t& out) {
  if (b == -1) return !__builtin_sub_overflow(int64_t{0}, a, &out);
  out = a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
  return true;
}
bool floor_remainder(int64_t a, int64_t b, int64_t& out) {
  const int64_t rest = b == -1 ? 0 : a % b;
  out = rest + (rest != 0 && (rest < 0) != (b < 0) ? b : 0);
  return true;
}

constexpr Operation kOperations[] = {
    {"+", [](int64_t a, int64_t b, int64_t& out) { return !__builtin_add_overflow(a, b, &out); },
     [](double a, double b) { return a + b; }},
    {"-", [](int64_t a, int64_t b, int64_t& out) { return !__builtin_sub_overflow(a, b, &out); },
     [](double a, double b) { return a - b; }},
    {"*", [](int64_t a, int64_t b, int64_t& out) { return !__builtin_mul_overflow(a, b, &out); },
     [](double a, double b) { return a * b; }},
    {"/", nullptr, [](double a, double b) { return a / b; }, true},
    {"//", floor_quotient, [](double a, double b) { return std::floor(a / b); }, true},
    {"%", floor_remainder, [](double a, double b) { return a - b * std::floor(a / b); }, true},
};

}  // namespace

Value Renderer::arithmetic(const Expr& expr, const Json& x, const Json& y) const {
  const auto* const operation = std::find_if(std::begin(kOperations), std::end(kOperations),
                                             [&](const Operation& o) { return o.sign == expr.text; });
  if (operation == std::end(kOperations)) fail(ErrorKind::kInternal, "no arithmetic by ", quote(expr.text));
  if (operation->divides && y.as_double() == 0) refuse(expr.line, "a division by zero");
  if (operation->integers == nullptr || !x.is_int() || !y.is_int())
    return Json(operation->numbers(x.as_double(), y.as_double()));
  int64_t out = 0;
  if (!operation->integers(x.as_int(), y.as_int(), out)) refuse(expr.line, "a number too large");
  return Json(out);
}

}  // namespace megalith::jinja
