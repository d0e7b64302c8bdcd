#include "libcore/text/jinja_value.h"

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

bool equal(const Value& a, const Value& b) {
  const Json *x = json_of(a), *y = json_of(b);
  if (x == nullptr || y == nullptr) return is_undefined(a) && is_undefined(b);
  if (x->is_number() && y->is_number()) return x->as_double() == y->as_double();
  return *x == *y;
}

std::string kind_of(const Value& value) {
  const Json* json = json_of(value);
  if (json == nullptr) return is_undefined(value) ? "an undefined value" : "a namespace";
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
    if ((c & 0xc0) != 0x80 || out.empty()) out.emplace_back();
    out.back() += c;
  }
  return out;
}

}  // namespace megalith::jinja
