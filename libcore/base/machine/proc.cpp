#include "libcore/base/machine/proc.h"

#include <algorithm>
#include <fstream>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The value of the first line "KEY: VALUE", with blanks before the colon, of a file; empty if there is none.
std::string value_in(const char* path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = std::min(line.find(':'), line.size());
    if (colon < line.size() && trim(std::string_view(line).substr(0, colon)) == key)
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

std::optional<size_t> number_in(const char* path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  const auto value = parse_int(word);  // "max": no limit
  return value ? std::optional<size_t>(static_cast<size_t>(*value)) : std::nullopt;
}

/// The files of a control group, by its version.
struct GroupFiles {
  const char *limit, *used;
};
constexpr GroupFiles kGroups[] = {
    {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
    {"/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"}};

}  // namespace

std::string processor_name() {
  const std::string name = value_in("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::optional<size_t> meminfo(std::string_view name) {
  const std::string value = value_in("/proc/meminfo", name);  // "24603208 kB"
  const auto kib = parse_int(value.substr(0, value.find(' ')));
  return kib ? std::optional<size_t>(static_cast<size_t>(*kib) * 1024) : std::nullopt;
}

std::optional<size_t> group_memory_limit() {
  for (const GroupFiles& group : kGroups)
    if (const auto limit = number_in(group.limit)) return limit;
  return std::nullopt;
}

std::optional<size_t> available_memory() {
  std::optional<size_t> available = meminfo("MemAvailable");
  for (const GroupFiles& group : kGroups) {
    const auto limit = number_in(group.limit), used = number_in(group.used);
    if (!limit || !used) continue;
    const size_t left = *limit - std::min(*limit, *used);
    available = std::min(available.value_or(left), left);
  }
  return available;
}

}  // namespace megalith
