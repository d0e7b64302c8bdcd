#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "libcore/json/json.h"

/// State that is saved as JSON and read back is declared once, like options (options/fields.h) but without
/// help texts:
///
///   struct Mark {
///     int64_t lines = 0;
///     uint64_t hash = 0;
///     template <class V>
///     void fields(V&& v) {
///       v("lines", lines);
///       v("xxh64", Hex64{hash});
///     }
///   };
///
/// A member is one of: bool, int, int64_t, uint64_t, double, std::string, Json, an enumeration (saved as its
/// number), Hex64, Figure, a struct that has fields() or both to_json() and take(const Json&), or a
/// std::vector, std::array or NamedFields of these. A std::optional of any of them is written only if it is
/// set.
namespace megalith {

/// A number written as 16 hexadecimal digits.
struct Hex64 {
  uint64_t& value;
};

/// A field that files from other programs or versions may lack. If it is missing on reading, `value` stays
/// unchanged.
template <class T>
struct IfPresent {
  T& value;
};

/// A measured number. One that is not finite is written as null. If it is missing or null on reading, `value`
/// becomes NaN.
struct Figure {
  double& value;
};

/// An object whose member names are data, not known when the program is compiled.
template <class T>
using NamedFields = std::vector<std::pair<std::string, T>>;

/// A visitor that adds the fields to `object`, in the order of their declaration.
class FieldWriter {
 public:
  explicit FieldWriter(Json& object) : object_(object) {}
  template <class T>
  void operator()(const char* name, T&& member) {
    object_.set(name, saved(member));
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& member) {
    if (member) object_.set(name, saved(*member));
  }
  template <class T>
  void operator()(const char* name, IfPresent<T> member) {
    object_.set(name, saved(member.value));
  }
  void operator()(const char* name, Figure figure) { object_.set(name, figure.value); }

 private:
  static Json saved(Hex64 number);
  template <class T>
  static Json saved(std::vector<T>& values) {
    Json array = Json::array();
    for (T& value : values) array.push_back(saved(value));
    return array;
  }
  template <class T, size_t N>
  static Json saved(std::array<T, N>& values) {
    Json array = Json::array();
    for (T& value : values) array.push_back(saved(value));
    return array;
  }
  template <class T>
  static Json saved(NamedFields<T>& members) {
    Json object = Json::object();
    for (auto& [name, value] : members) object.set(name, saved(value));
    return object;
  }
  template <class T>
  static Json saved(T& value) {
    if constexpr (std::is_enum_v<T>) {
      return static_cast<int64_t>(value);
    } else if constexpr (std::is_constructible_v<Json, T>) {
      return value;
    } else if constexpr (requires { value.to_json(); }) {
      return value.to_json();
    } else {
      Json object = Json::object();
      value.fields(FieldWriter(object));
      return object;
    }
  }

  Json& object_;
};

/// A visitor that sets the fields to the members of `object`; other members are skipped.
class FieldReader {
 public:
  explicit FieldReader(const Json& object) : object_(object) {}
  template <class T>
  void operator()(const char* name, T&& member) {
    read(object_[name], member);
  }
  template <class T>
  void operator()(const char* name, std::optional<T>& member) {
    member.reset();
    if (const Json* const value = object_.find(name)) read(*value, member.emplace());
  }
  template <class T>
  void operator()(const char* name, IfPresent<T> member) {
    if (const Json* const value = object_.find(name)) read(*value, member.value);
  }
  void operator()(const char* name, Figure figure);

 private:
  static void read(const Json& value, bool& out);
  static void read(const Json& value, int& out);
  static void read(const Json& value, int64_t& out);
  static void read(const Json& value, uint64_t& out);
  static void read(const Json& value, double& out);
  static void read(const Json& value, std::string& out);
  static void read(const Json& value, Json& out);
  static void read(const Json& value, Hex64 out);
  template <class T>
  static void read(const Json& value, std::vector<T>& out) {
    out.clear();
    for (const Json& element : value.as_array()) read(element, out.emplace_back());
  }
  /// If the file has fewer elements (an earlier version wrote it), the remaining elements of `out` stay
  /// unchanged.
  template <class T, size_t N>
  static void read(const Json& value, std::array<T, N>& out) {
    const Json::Array& elements = value.as_array();
    for (size_t i = 0; i < N && i < elements.size(); ++i) read(elements[i], out[i]);
  }
  template <class T>
  static void read(const Json& value, NamedFields<T>& out) {
    out.clear();
    for (const auto& [name, member] : value.as_object()) read(member, out.emplace_back(name, T{}).second);
  }
  template <class T>
  static void read(const Json& value, T& out) {
    if constexpr (std::is_enum_v<T>)
      out = static_cast<T>(value.as_int());
    else if constexpr (requires { out.take(value); })
      out.take(value);
    else
      out.fields(FieldReader(value));
  }

  const Json& object_;
};

/// Adds the fields of `state` to `object`, in the order of their declaration.
template <class T>
void add_fields(Json& object, T state) {
  state.fields(FieldWriter(object));
}

/// Reads a T from the members of `object`; other members are skipped. Throws kData when a field is missing or
/// has another type.
template <class T>
T read_fields(const Json& object) {
  T state;
  state.fields(FieldReader(object));
  return state;
}

}  // namespace megalith
