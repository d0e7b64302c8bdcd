#include "libcore/json/json_names.h"

#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

thread_local JsonNames* innermost = nullptr;

/// Whether `value` is `from` or inside it. If so, appends the path that leads from `from` to `value` to
/// `way`.
bool find_way(const Json& from, const Json& value, std::string& way) {
  if (&from == &value) return true;
  const size_t here = way.size();
  if (from.is_object())
    for (const auto& [key, member] : from.as_object()) {
      way += (here > 0 ? "." : "") + key;
      if (find_way(member, value, way)) return true;
      way.resize(here);
    }
  if (from.is_array())
    for (size_t i = 0; i < from.as_array().size(); ++i) {
      way += concat("[", i, "]");
      if (find_way(from.as_array()[i], value, way)) return true;
      way.resize(here);
    }
  return false;
}

}  // namespace

JsonNames::JsonNames(const Json& root, std::string file)
    : root_(root), file_(std::move(file)), outer_(std::exchange(innermost, this)) {}

JsonNames::~JsonNames() {
  innermost = outer_;
}

std::string JsonNames::of(const Json& value) {
  for (const JsonNames* names = innermost; names; names = names->outer_) {
    std::string way;
    if (!find_way(names->root_, value, way)) continue;
    return names->file_ + (way.empty() ? ": the whole" : ": " + shortened(way, 200));
  }
  return "JSON value";
}

}  // namespace megalith
