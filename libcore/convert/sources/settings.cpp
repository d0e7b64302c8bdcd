#include "libcore/convert/sources/settings.h"

#include <limits>
#include <utility>

#include "libcore/base/text.h"

namespace megalith {

Settings::Settings(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

const Json* Settings::find(const char* key) const {
  const Json* found = json_.find(key);
  return found && !found->is_null() ? found : nullptr;
}

int Settings::count(const char* key) const {
  const Json* found = find(key);
  if (!found) refuse("has no ", quote(key));
  if (!found->is_int() || found->as_int() < 1 || found->as_int() > std::numeric_limits<int>::max())
    refuse(quote(key), " is ", found->dump(), ", wanted a positive integer");
  return static_cast<int>(found->as_int());
}

double Settings::number(const char* key, double otherwise) const {
  const Json* found = find(key);
  if (found && !found->is_number()) refuse(quote(key), " is ", found->dump(), ", wanted a number");
  return found ? found->as_double() : otherwise;
}

bool Settings::flag(const char* key, bool otherwise) const {
  const Json* found = find(key);
  if (found && !found->is_bool()) refuse(quote(key), " is ", found->dump(), ", wanted true or false");
  return found ? found->as_bool() : otherwise;
}

std::string Settings::text(const char* key, const std::string& otherwise) const {
  const Json* found = find(key);
  if (found && !found->is_string()) refuse(quote(key), " is ", found->dump(), ", wanted a string");
  return found ? found->as_string() : otherwise;
}

void Settings::only(const char* key, bool supported, bool otherwise) const {
  if (flag(key, otherwise) != supported)
    refuse(quote(key), " ", supported ? "false" : "true", " is not supported");
}

}  // namespace megalith
