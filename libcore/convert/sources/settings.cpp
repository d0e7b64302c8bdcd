#include "libcore/convert/sources/settings.h"

#include <algorithm>
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

std::optional<int> marked_interval(const Json& list, int layers, int marked) {
  if (!list.is_array() || list.as_array().size() < static_cast<size_t>(layers)) return {};
  int interval = 0;
  for (int layer = 1; layer <= layers; ++layer) {
    const Json& entry = list.as_array()[static_cast<size_t>(layer - 1)];
    if (!entry.is_int() || entry.as_int() < 0 || entry.as_int() > 1) return {};
    const bool is_marked = entry.as_int() == marked;
    if (is_marked && interval == 0) interval = layer;
    if (is_marked != (interval > 0 && layer % interval == 0)) return {};
  }
  return interval;
}

bool set_windowed(ModelConfig& c, const std::vector<bool>& windowed) {
  const auto begin = windowed.begin(), end = windowed.begin() + c.layers;
  const auto full = static_cast<int>(std::find(begin, end, false) - begin),
             first = static_cast<int>(std::find(begin, end, true) - begin);
  if (first == c.layers) {
    c.sliding_window = 0;
    return true;
  }
  for (const auto& [skip, plain] : {std::pair{0, 0}, std::pair{full + 1, 0}, std::pair{0, first}}) {
    ModelConfig model = c;
    model.window_skip_freq = skip;
    model.full_layers = plain;
    const auto fits = [&](int layer) {
      return (model.window_of(layer) > 0) == windowed[static_cast<size_t>(layer)];
    };
    int layer = 0;
    while (layer < c.layers && fits(layer)) ++layer;
    if (layer < c.layers) continue;
    c = model;
    return true;
  }
  return false;
}

namespace {

/// The keys under which a file may have an option, the most likely one last.
std::vector<std::string> keys_of(const Field& field, std::span<const OptionKeys> keys) {
  for (const OptionKeys& row : keys)
    if (field.name == row.option) return {row.keys.begin(), row.keys.end()};
  std::vector<std::string> own;
  for (const std::string& name : field.aliases) own.push_back(json_key(name));
  own.push_back(json_key(field.name));
  return own;
}

}  // namespace

void check_numbers(const ModelConfig& config, const Settings& file, std::span<const OptionKeys> keys) {
  ModelConfig checked = config;
  Problems problems;
  for (const Field& field : fields_of(checked)) {
    const std::vector<std::string> names = keys_of(field, keys);
    const auto found = std::find_if(names.begin(), names.end(),
                                    [&](const std::string& name) { return file.find(name.c_str()); });
    check_number(field, {file.where(), quote(found == names.end() ? names.back() : *found)}, problems);
  }
  problems.throw_if_any(ErrorKind::kData);
}

}  // namespace megalith
