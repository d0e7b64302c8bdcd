#include "libcore/text/chat/jinja_value.h"

#include <algorithm>

#include "libcore/base/utf8.h"

namespace megalith::jinja {

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

namespace {

bool equal(const Json& x, const Json& y);

bool equal(const Json::Object& x, const Json& y) {
  return x.size() == y.as_object().size() && std::all_of(x.begin(), x.end(), [&](const Json::Member& member) {
           const Json* other = y.find(member.first);
           return other != nullptr && equal(member.second, *other);
         });
}

/// Compares as Python does: True equals 1, 1 equals 1.0, and members have no order.
bool equal(const Json& x, const Json& y) {
  if (x.is_bool()) return equal(Json(int{x.as_bool()}), y);
  if (y.is_bool()) return equal(x, Json(int{y.as_bool()}));
  if (x.is_int() && y.is_int()) return x.as_int() == y.as_int();
  if (x.is_number() && y.is_number()) return x.as_double() == y.as_double();
  if (x.is_array() && y.is_array())
    return std::equal(x.as_array().begin(), x.as_array().end(), y.as_array().begin(), y.as_array().end(),
                      [](const Json& a, const Json& b) { return equal(a, b); });
  if (x.is_object() && y.is_object()) return equal(x.as_object(), y);
  return x == y;
}

}  // namespace

bool equal(const Value& a, const Value& b) {
  const Json *x = json_of(a), *y = json_of(b);
  if (x == nullptr || y == nullptr) return is_undefined(a) && is_undefined(b);
  return equal(*x, *y);
}

namespace {

void measure(const Json& json, int depth, Extent& extent) {
  extent.depth = std::max(extent.depth, depth);
  extent.bytes += sizeof json;
  if (extent.too_much()) return;
  if (json.is_string()) {
    extent.bytes += json.as_string().size();
  } else if (json.is_array()) {
    for (const Json& entry : json.as_array()) {
      measure(entry, depth + 1, extent);
      if (extent.too_much()) return;
    }
  } else if (json.is_object()) {
    for (const auto& [key, member] : json.as_object()) {
      extent.bytes += sizeof(std::string) + key.size();
      measure(member, depth + 1, extent);
      if (extent.too_much()) return;
    }
  }
}

}  // namespace

Extent extent_of(const Json& json) {
  Extent extent;
  measure(json, 0, extent);
  return extent;
}

std::string kind_of(const Value& value) {
  const Json* json = json_of(value);
  if (json == nullptr)
    return is_undefined(value)                    ? "an undefined value"
           : std::holds_alternative<Macro>(value) ? "a macro"
                                                  : "a namespace";
  return json->is_null()     ? "none"
         : json->is_bool()   ? "a truth value"
         : json->is_number() ? "a number"
         : json->is_string() ? "a text"
         : json->is_array()  ? "a list"
                             : "a mapping";
}

std::vector<std::string> characters_of(std::string_view text) {
  std::vector<std::string> out;
  for (const char c : text) {
    if (!continues_character(c) || out.empty()) out.emplace_back();
    out.back() += c;
  }
  return out;
}

}  // namespace megalith::jinja
