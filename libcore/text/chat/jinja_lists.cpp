#include <algorithm>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/text/chat/jinja_renderer.h"
#include "libcore/text/chat/jinja_signatures.h"
#include "libcore/text/chat/jinja_text.h"

// The filters of whole lists.
namespace megalith::jinja {

Value Renderer::attribute(const Json& entry, const std::string& path, int line) const {
  Value value = entry;
  for (const std::string& part : megalith::split(path, '.')) {
    value = member(value, part, Access::kMember, line);
  }
  return value;
}

Value Renderer::selection(const Expr& expr, const Value& value) {
  const Json::Array all = truth(value) ? entries(value, expr.line) : Json::Array();  // empty: none
  if (expr.text == "map") return mapped(expr, all);
  const auto reject = [&] {
    refuse(expr.line, concat("the filter ", quote(expr.text), " with these arguments is not supported"));
  };
  const bool by_attribute = expr.text.ends_with("attr"), kept = expr.text.starts_with("select");
  const size_t first = by_attribute ? 2 : 1;  // where the test is among the children
  if (!expr.named.empty() || expr.children.size() < first || expr.children.size() > first + 2) reject();
  const std::optional<std::string> path = by_attribute ? text_argument(expr, 1) : std::nullopt;
  if (by_attribute && !path) reject();
  const bool tested = expr.children.size() > first;
  const std::string test =
      tested ? text_of(eval(expr.children[first]), expr.line, concat(quote(expr.text), ": its test")) : "";
  const std::optional<Value> operand =
      expr.children.size() > first + 1 ? argument(expr, first + 1) : std::nullopt;
  Json::Array out;
  for (const Json& entry : all) {
    const Value tried = path ? attribute(entry, *path, expr.line) : Value(entry);
    const bool passed = tested ? passes(test, tried, operand, expr.line) : truth(tried);
    if (passed == kept) out.push_back(entry);
  }
  return Json(std::move(out));
}

Value Renderer::mapped(const Expr& expr, const Json::Array& all) {
  Json::Array out;
  const Expr* path = nullptr;
  const Expr* otherwise = nullptr;
  for (const auto& [name, value] : expr.named) (name == "attribute" ? path : otherwise) = &value;
  if (path == nullptr && expr.children.size() < 2)
    refuse(expr.line, "the filter \"map\" with these arguments is not supported");
  size_t bytes = 0;
  for (const Json& entry : all) {
    Value made = path ? attribute(entry, text_of(eval(*path), expr.line, "\"map\": its attribute"), expr.line)
                      : filtered(expr, entry);
    if (is_undefined(made) && otherwise != nullptr) made = eval(*otherwise);
    const Json* json = json_of(made);
    if (json == nullptr) refuse(expr.line, concat(kind_of(made), " in the list of \"map\" is not supported"));
    out.push_back(add_to(bytes, *json, expr.line));
  }
  return Json(std::move(out));
}

Value Renderer::filtered(const Expr& expr, const Json& entry) {
  const std::string name = text_of(eval(expr.children[1]), expr.line, "\"map\": its filter");
  const Signature* const signature = find_filter(name);
  if (signature == nullptr) refuse(expr.line, concat("the filter ", quote(name), " is not supported"));
  Expr one{.kind = Expr::kFilter, .line = expr.line, .text = name};
  one.children.push_back(Expr{.kind = Expr::kLiteral, .line = expr.line, .literal = entry});
  one.children.insert(one.children.end(), expr.children.begin() + 2, expr.children.end());
  if (const std::string wrong = arrange_arguments(one, 1, *signature); !wrong.empty())
    refuse(expr.line, concat("the filter ", quote(name), " ", wrong));
  return eval(one);
}

Value Renderer::sort_key(const Json& entry, const SortRule& rule, int line) const {
  Value key = rule.attribute.empty() ? Value(entry) : attribute(entry, rule.attribute, line);
  if (!rule.case_sensitive && is_text(key)) key = Json(lower(json_of(key)->as_string()));
  return key;
}

Json::Array Renderer::sorted(Json::Array all, const SortRule& rule, int line) {
  if (rule.descending) std::reverse(all.begin(), all.end());  // so that equal elements keep their order
  std::vector<std::pair<Value, Json>> keyed;
  for (Json& entry : all) {
    Value key = sort_key(entry, rule, line);
    keyed.emplace_back(std::move(key), std::move(entry));
  }
  // Neighbours are compared first, so that no comparison throws within std::stable_sort.
  for (size_t i = 1; i < keyed.size(); ++i) is_less("<", keyed[i - 1].first, keyed[i].first, line);
  std::stable_sort(keyed.begin(), keyed.end(),
                   [&](const auto& a, const auto& b) { return is_less("<", a.first, b.first, line); });
  Json::Array out;
  for (auto& [key, entry] : keyed) out.push_back(std::move(entry));
  if (rule.descending) std::reverse(out.begin(), out.end());
  return out;
}

Value Renderer::reversed(const Value& value, int line) {
  Json::Array all = entries(value, line);
  std::reverse(all.begin(), all.end());
  return is_text(value) ? join(all, {}, line) : Value(Json(std::move(all)));
}

Value Renderer::extreme(const Expr& expr, const Value& value) {
  const Json::Array all = sorted(entries(value, expr.line), {}, expr.line);
  if (all.empty()) return Undefined{};
  return expr.text == "min" ? all.front() : all.back();
}

Value Renderer::sort(const Expr& expr, const Value& value) {
  const SortRule rule{.attribute = text_argument(expr, 3).value_or(""),
                      .case_sensitive = flag_argument(expr, 2),
                      .descending = flag_argument(expr, 1)};
  return Json(sorted(entries(value, expr.line), rule, expr.line));
}

Value Renderer::unique(const Expr& expr, const Value& value) {
  const SortRule rule{.attribute = text_argument(expr, 2).value_or(""),
                      .case_sensitive = flag_argument(expr, 1)};
  Json::Array out;
  std::vector<Value> seen;
  for (const Json& entry : entries(value, expr.line)) {
    Value key = sort_key(entry, rule, expr.line);
    count_step(expr.line, sizeof(Json) * seen.size());
    if (std::any_of(seen.begin(), seen.end(), [&](const Value& one) { return equal(one, key); })) continue;
    seen.push_back(std::move(key));
    out.push_back(entry);
  }
  return Json(std::move(out));
}

Value Renderer::dictsort(const Expr& expr, const Value& value) {
  const Json pairs = *json_of(items(value, expr.line));
  const std::string by = text_argument(expr, 2).value_or("key");
  if (by != "key" && by != "value")
    refuse(expr.line, concat("\"dictsort\" by ", quote(by), " is not supported"));
  Json::Array keyed;
  for (const Json& pair : pairs.as_array())
    keyed.push_back(Json(Json::Object{{"key", pair.as_array()[by == "key" ? 0 : 1]}, {"pair", pair}}));
  const SortRule rule{
      .attribute = "key", .case_sensitive = flag_argument(expr, 1), .descending = flag_argument(expr, 3)};
  Json out = Json::array();
  for (const Json& one : sorted(std::move(keyed), rule, expr.line)) out.push_back(one["pair"]);
  return out;
}

}  // namespace megalith::jinja
