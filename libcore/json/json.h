#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace megalith {

/// A JSON value of a configuration, an index or a metrics line (for a corpus see json/document_json.h).
/// Objects keep the order in which members were added. Throws kData, with the member's path, if a member is
/// read that does not exist or has another type.
class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  // Values are copied, moved and destroyed in json.cpp: otherwise each of the three hundred files that
  // include this header would compile the variant's tables for that.
  Json();                   // null
  Json(std::nullptr_t);     // NOLINT(google-explicit-constructor): literals read as JSON
  Json(bool value);         // NOLINT(google-explicit-constructor)
  Json(int value);          // NOLINT(google-explicit-constructor)
  Json(int64_t value);      // NOLINT(google-explicit-constructor)
  Json(uint64_t value);     // NOLINT(google-explicit-constructor): above 2^63-1 kept as double
  Json(double value);       // NOLINT(google-explicit-constructor)
  Json(const char* value);  // NOLINT(google-explicit-constructor)
  Json(std::string value);  // NOLINT(google-explicit-constructor)
  Json(Array value);        // NOLINT(google-explicit-constructor)
  Json(Object value);       // NOLINT(google-explicit-constructor)
  Json(const Json& other);
  Json& operator=(const Json& other);
  Json(Json&&) noexcept;
  Json& operator=(Json&&) noexcept;
  ~Json();
  static Json array();
  static Json object();

  /// Strict RFC 8259, except that an integer beyond 64 bits is kept as a double. Throws kData, for duplicate
  /// keys as well; each message begins with `name` (a file name).
  static Json parse(std::string_view text, std::string_view name);
  static Json load(const std::string& path);  // kNoInput, kData

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  bool as_bool() const;
  int64_t as_int() const;
  double as_double() const;  // also accepts an integer
  const std::string& as_string() const;
  const Array& as_array() const;
  const Object& as_object() const;
  Array& as_array();
  Object& as_object();

  const Json* find(std::string_view key) const;        // nullptr when absent or not an object
  const Json& operator[](std::string_view key) const;  // throws kData when absent
  Json& set(std::string key, Json value);              // adds or replaces a member; returns its value
  void push_back(Json value);                          // kData if this is not an array

  /// The text of the value; indent 0 gives one line. Non-finite doubles are written as null, since JSON
  /// cannot express them. Non-ASCII text stays UTF-8.
  std::string dump(int indent = 0) const;
  bool operator==(const Json&) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

/// `text` as a JSON string literal with its quotes.
std::string json_quote(std::string_view text);

}  // namespace megalith
