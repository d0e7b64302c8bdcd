#include "libcore/json/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <unordered_set>
#include <utility>

#include <simdjson.h>

#include "libcore/base/error.h"
#include "libcore/base/refusals.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json_names.h"
#include "libcore/json/not_numbers.h"

namespace megalith {
namespace {

constexpr size_t kDepth = 256;

Json::Object object_from(simdjson::dom::object object, std::string_view name);

Json value_from(simdjson::dom::element element, std::string_view name) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::NULL_VALUE:
      return {};
    case element_type::BOOL:
      return bool{element};
    case element_type::INT64:
      return int64_t{element};
    case element_type::UINT64:
      return uint64_t{element};
    case element_type::DOUBLE:
      return double{element};
    case element_type::STRING:
      return std::string(std::string_view(element));
    case element_type::ARRAY: {
      Json::Array out;
      out.reserve(simdjson::dom::array(element).size());
      for (simdjson::dom::element item : simdjson::dom::array(element)) out.push_back(value_from(item, name));
      return out;
    }
    case element_type::OBJECT:
      return object_from(simdjson::dom::object(element), name);
  }
  fail(ErrorKind::kInternal, name, ": unknown JSON element");
}

Json::Object object_from(simdjson::dom::object object, std::string_view name) {
  Json::Object out;
  out.reserve(object.size());
  std::unordered_set<std::string_view> seen;
  seen.reserve(object.size());
  for (auto [key, value] : object) {
    if (!seen.insert(key).second)
      fail(ErrorKind::kData, name, ": key ", quote(key), " appears twice in one object");
    out.emplace_back(std::string(key), value_from(value, name));
  }
  return out;
}

void dump_number(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const std::string text = format_double(value);
  out += text;
  if (text.find_first_of(".eE") == std::string::npos)
    out += ".0";  // so that it is read back as a floating-point number
}

struct Dumper {
  std::string out;
  int indent;

  void line(int depth) {
    if (indent == 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
  }
  void between(bool first, int depth) {
    if (!first) out += indent == 0 ? ", " : ",";
    line(depth);
  }
  void value(const Json& json, int depth) {
    if (json.is_null()) out += "null";
    if (json.is_bool()) out += json.as_bool() ? "true" : "false";
    if (json.is_int()) out += std::to_string(json.as_int());
    if (json.is_number() && !json.is_int()) dump_number(out, json.as_double());
    if (json.is_string()) out += json_quote(json.as_string());
    if (json.is_array()) array(json.as_array(), depth);
    if (json.is_object()) object(json.as_object(), depth);
  }
  void array(const Json::Array& items, int depth) {
    out += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      between(i == 0, depth + 1);
      value(items[i], depth + 1);
    }
    if (!items.empty()) line(depth);
    out += ']';
  }
  void object(const Json::Object& members, int depth) {
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      between(i == 0, depth + 1);
      out += json_quote(members[i].first);
      out += ": ";
      value(members[i].second, depth + 1);
    }
    if (!members.empty()) line(depth);
    out += '}';
  }
};

/// Throws kSystem if simdjson got no memory, which it reports by a code, like bad JSON.
void require_memory(simdjson::error_code error) {
  if (error == simdjson::MEMALLOC) throw out_of_memory();
}

/// A copy that simdjson may read beyond its end. If there is no memory for it, simdjson's is empty.
simdjson::padded_string padded(std::string_view text) {
  simdjson::padded_string copy(text);
  if (copy.data() == nullptr) throw out_of_memory();
  return copy;
}

constexpr size_t kLongInteger = 19;  // an integer of this many digits may not fit in 64 bits

bool fits_64_bits(std::string_view digits, bool negative) {
  uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return result.ec == std::errc() && (!negative || value <= uint64_t{1} << 63);
}

bool one_of(std::string_view some, char c) {
  return some.find(c) != std::string_view::npos;
}

/// Whether the digits [at, end) of a JSON text are an integer that does not fit in 64 bits. They must not be
/// inside a string.
bool is_long_integer(std::string_view text, size_t at, size_t end) {
  const bool fraction_or_exponent = at > 0 && one_of(".eE+", text[at - 1]);
  const bool whole = end == text.size() || !one_of(".eE", text[end]);
  return end - at >= kLongInteger && whole && !fraction_or_exponent &&
         !fits_64_bits(text.substr(at, end - at), at > 0 && text[at - 1] == '-');
}

// Appends ".0" to integers beyond 64 bits: simdjson rejects such integers but accepts doubles. (Hugging
// Face's tokenizer_config.json says "model_max_length": 1000000000000000019884624838656 for no limit.)
std::string with_long_integers_as_doubles(std::string_view text) {
  std::string out;
  bool in_string = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    out += text.substr(at, end - at);
    if (!in_string && is_long_integer(text, at, end)) out += ".0";
    const char next = end < text.size() ? text[end] : '\0';
    const bool escape = in_string && next == '\\';
    out += text.substr(end, escape ? 2 : 1);
    at = end + (escape ? 2 : 1);
    if (next == '"') in_string = !in_string;
  }
  return out;
}

template <class T, class V>
auto& get_as(V& value, const Json& json, const char* wanted) {
  auto* held = std::get_if<T>(&value);
  if (!held) fail(ErrorKind::kData, JsonNames::of(json), " is not ", wanted);
  return *held;
}

}  // namespace

Json::Json() = default;
Json::Json(std::nullptr_t) {}
Json::Json(bool value) : value_(value) {}
Json::Json(int value) : value_(int64_t{value}) {}
Json::Json(int64_t value) : value_(value) {}
Json::Json(double value) : value_(value) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;
bool Json::operator==(const Json&) const = default;

// Not the variant's own copies, which crash where memory is missing: if copying an alternative throws,
// libstdc++ destroys the one with the number 255, unless moving some alternative may throw.
Json::Json(const Json& other) {
  std::visit(
      [this](const auto& value) {
        auto copy = value;
        value_ = std::move(copy);
      },
      other.value_);
}

Json& Json::operator=(const Json& other) {
  return *this = Json(other);
}

Json::Json(uint64_t value) {
  if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    value_ = static_cast<int64_t>(value);
  else
    value_ = static_cast<double>(value);
}

Json Json::array() {
  return Json(Array{});
}
Json Json::object() {
  return Json(Object{});
}

Json Json::parse(std::string_view text, std::string_view name) {
  simdjson::dom::parser parser;
  const auto allocated = parser.allocate(text.size() + text.size() / kLongInteger + 64, kDepth);
  require_memory(allocated);
  if (allocated) fail(ErrorKind::kData, name, ": ", simdjson::error_message(allocated));
  simdjson::dom::element root;
  auto error = parser.parse(padded(text)).get(root);
  require_memory(error);
  // After any error, the text is parsed again with long integers as doubles. The error's code cannot tell
  // whether that helps: it depends on simdjson's version. Any other error occurs again.
  if (error) error = parser.parse(padded(with_long_integers_as_doubles(text))).get(root);
  require_memory(error);
  if (error) {
    if (const std::string found = find_no_number(text); !found.empty())
      fail(ErrorKind::kData, name, ": ", found, ", wanted a finite number or null");
    fail(ErrorKind::kData, name, ": not valid JSON: ", simdjson::error_message(error));
  }
  return value_from(root, name);
}

Json Json::load(const std::string& path) {
  return parse(read_file(path), path);
}

bool Json::as_bool() const {
  return get_as<bool>(value_, *this, "true or false");
}
int64_t Json::as_int() const {
  return get_as<int64_t>(value_, *this, "an integer");
}
double Json::as_double() const {
  if (is_int()) return static_cast<double>(as_int());
  return get_as<double>(value_, *this, "a number");
}
const std::string& Json::as_string() const {
  return get_as<std::string>(value_, *this, "a string");
}
const Json::Array& Json::as_array() const {
  return get_as<Array>(value_, *this, "an array");
}
const Json::Object& Json::as_object() const {
  return get_as<Object>(value_, *this, "an object");
}
Json::Array& Json::as_array() {
  return get_as<Array>(value_, *this, "an array");
}
Json::Object& Json::as_object() {
  return get_as<Object>(value_, *this, "an object");
}

void Json::push_back(Json value) {
  as_array().push_back(std::move(value));
}

const Json* Json::find(std::string_view key) const {
  const auto* members = std::get_if<Object>(&value_);
  if (!members) return nullptr;
  const auto it =
      std::find_if(members->begin(), members->end(), [&](const Member& m) { return m.first == key; });
  return it == members->end() ? nullptr : &it->second;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* value = find(key);
  if (!value)
    fail(ErrorKind::kData, JsonNames::of(*this), is_object() ? "" : " is not an object, and", " has no key ",
         quote(key));
  return *value;
}

Json& Json::set(std::string key, Json value) {
  Object& members = as_object();
  for (Member& member : members)
    if (member.first == key) return member.second = std::move(value);
  return members.emplace_back(std::move(key), std::move(value)).second;
}

std::string Json::dump(int indent) const {
  Dumper dumper{{}, indent};
  dumper.value(*this, 0);
  return std::move(dumper.out);
}

std::string json_quote(std::string_view text) {
  constexpr std::string_view kMarked = "\"\\\n\t\r\b\f", kMarks = "\"\\ntrbf";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (const size_t marked = kMarked.find(c); marked != std::string_view::npos) {
      out += '\\';
      out += kMarks[marked];
    } else if (byte < 0x20) {
      out += "\\u";
      append_hex(out, byte, 4);
    } else {
      out += c;
    }
  }
  return out + '"';
}

}  // namespace megalith
