#include "libcore/base/outside_names.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <mutex>
#include <vector>

#include "libcore/base/terminal.h"

namespace megalith {
namespace {

constexpr std::string_view kInvisible = "\n\t";
constexpr size_t kMost = 1000;  // names; a folder may hold any number of them

struct Names {
  std::mutex mutex;
  std::vector<std::string> list;  // longest first: one may contain another
  std::atomic<bool> any{false};
};

Names& names() {
  static Names* const kNames = new Names;  // never destroyed: threads may log until the process ends
  return *kNames;
}

/// Whether the part is a name. A line end alone is none: escaping it would change messages of our own.
bool is_name(std::string_view part) {
  return part.find_first_of(kInvisible) != std::string_view::npos &&
         std::any_of(part.begin(), part.end(),
                     [](char c) { return std::isgraph(static_cast<unsigned char>(c)) != 0; });
}

void add(std::string_view part) {
  Names& all = names();
  const std::lock_guard lock(all.mutex);
  if (all.list.size() >= kMost || std::find(all.list.begin(), all.list.end(), part) != all.list.end()) return;
  const auto place = std::find_if(all.list.begin(), all.list.end(),
                                  [part](const std::string& other) { return other.size() < part.size(); });
  all.list.emplace(place, part);
  all.any.store(true);
}

}  // namespace

void note_outside_name(std::string_view path) {
  if (path.find_first_of(kInvisible) == std::string_view::npos) return;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find_first_of("/="));
    if (is_name(part)) add(part);
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
}

std::string escape_outside_names(std::string text) {
  Names& all = names();
  if (!all.any.load() || text.find_first_of(kInvisible) == std::string::npos) return text;
  const std::lock_guard lock(all.mutex);
  for (const std::string& name : all.list) {
    const std::string escaped = printable(name);
    for (size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += escaped.size())
      text.replace(at, name.size(), escaped);
  }
  return text;
}

}  // namespace megalith
