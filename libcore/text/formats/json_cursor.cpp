#include "libcore/text/formats/json_cursor.h"

#include <algorithm>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {

std::string JsonCursor::place() const {
  return concat(file(), ": ", path_.empty() ? "the file" : path_);
}

void JsonCursor::refuse(const std::string& wanted) const {
  fail(ErrorKind::kData, place(), " is ", shortened(json().dump(), 300), ", which is not supported; wanted ",
       wanted);
}

JsonCursor JsonCursor::at(const char* key) const {
  if (!json().is_object()) refuse("an object");
  const Json* value = json().find(key);
  const std::string path = concat(path_, path_.empty() ? "" : ".", key);
  if (!value) fail(ErrorKind::kData, file(), ": no ", path, "; the file is not whole");
  return {*value, file(), path};
}

std::optional<JsonCursor> JsonCursor::find(const char* key) const {
  const Json* value = json().find(key);
  if (!value || value->is_null()) return std::nullopt;
  return at(key);
}

std::vector<JsonCursor> JsonCursor::list() const {
  if (!json().is_array()) refuse("a list");
  std::vector<JsonCursor> out;
  for (const Json& value : json().as_array())
    out.push_back(JsonCursor(value, file(), concat(path_, "[", out.size(), "]")));
  return out;
}

const std::string& JsonCursor::text() const {
  if (!json().is_string()) refuse("a text");
  return json().as_string();
}

int64_t JsonCursor::integer() const {
  if (!json().is_int()) refuse("an integer");
  return json().as_int();
}

bool JsonCursor::flag(const char* key, bool absent) const {
  return find(key) ? must_flag(key) : absent;
}

bool JsonCursor::must_flag(const char* key) const {
  const JsonCursor value = at(key);
  if (!value.json().is_bool()) value.refuse("true or false");
  return value.json().as_bool();
}

std::string JsonCursor::text(const char* key, const char* absent) const {
  const auto value = find(key);
  return value ? value->text() : absent;
}

void JsonCursor::only(std::span<const char* const> known) const {
  if (!json().is_object()) refuse("an object");
  for (const auto& [key, value] : json().as_object())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(ErrorKind::kData, file(), ": ", path_.empty() ? "the file" : path_, " has a member ", quote(key),
           ", which is not known; wanted ", join(std::vector<std::string>(known.begin(), known.end()), ", "));
}

std::string JsonCursor::type() const {
  const Json* type = json().find("type");
  return type && type->is_string() ? type->as_string() : std::string();
}

}  // namespace megalith
