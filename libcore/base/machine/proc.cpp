#include "libcore/base/machine/proc.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The value of the first line "KEY: VALUE", with blanks before the colon, of a file; empty if there is none.
std::string value_in(const std::string& path, std::string_view key) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    const size_t colon = std::min(line.find(':'), line.size());
    if (colon < line.size() && trim(std::string_view(line).substr(0, colon)) == key)
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  }
  return {};
}

std::optional<size_t> number_in(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  if (!(in >> word)) return std::nullopt;
  const auto value = parse_int(word);  // "max": no limit
  return value ? std::optional<size_t>(static_cast<size_t>(*value)) : std::nullopt;
}

/// The number in the first line "NAME NUMBER" of a file; 0 if there is none.
size_t number_of(const std::string& name, const std::string& path) {
  std::ifstream in(path);
  std::string key;
  for (size_t value = 0; in >> key >> value;)
    if (key == name) return value;
  return 0;
}

/// How a version of control groups names its files.
struct GroupVersion {
  const char* controller;  // in /proc/self/cgroup
  const char* folder;
  const char *limit, *used;
  const char* cache;  // in memory.stat: pages of files that the system drops when memory is needed
};
constexpr GroupVersion kVersions[] = {{"", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"},
                                      {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                       "memory.usage_in_bytes", "total_inactive_file"}};

/// The path of this process's control group, "/slurm/job_7/step_0", from a line "4:cpu,memory:PATH" of
/// /proc/self/cgroup, or "0::PATH" for version 2. "/" if there is none.
std::string group_path(const std::string& root, std::string_view controller) {
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::vector<std::string> names = split(line.substr(first + 1, second - first - 1), ',');
    std::string path = line.substr(second + 1);
    if (std::ranges::find(names, controller) != names.end() && path.starts_with('/')) return path;
  }
  return "/";
}

/// What a control group leaves of the memory.
struct GroupMemory {
  size_t limit, left;
};

/// The control groups that limit this process: its own and those that hold it. In a container the path may be
/// the host's, which is not there; the container's group is then the folder itself.
std::vector<GroupMemory> limiting_groups(const std::string& root) {
  std::vector<GroupMemory> groups;
  for (const GroupVersion& version : kVersions) {
    std::string path = group_path(root, version.controller);
    while (true) {
      const std::string folder = concat(root, version.folder, path, '/');
      const auto limit = number_in(folder + version.limit), used = number_in(folder + version.used);
      if (limit && used) {
        const size_t cached = std::min(*used, number_of(version.cache, folder + "memory.stat"));
        groups.push_back({*limit, *limit - std::min(*limit, *used - cached)});
      }
      if (path.empty() || path == "/") break;
      path.resize(path.rfind('/'));
    }
  }
  return groups;
}

}  // namespace

std::string processor_name() {
  const std::string name = value_in("/proc/cpuinfo", "model name");
  return name.empty() ? "unknown" : name;
}

std::optional<size_t> meminfo(std::string_view name, const std::string& root) {
  const std::string value = value_in(root + "/proc/meminfo", name);  // "24603208 kB"
  const auto kib = parse_int(value.substr(0, value.find(' ')));
  return kib ? std::optional<size_t>(static_cast<size_t>(*kib) * 1024) : std::nullopt;
}

std::optional<size_t> group_memory_limit(const std::string& root) {
  const std::vector<GroupMemory> groups = limiting_groups(root);
  const auto least = std::ranges::min_element(groups, {}, &GroupMemory::limit);
  return least == groups.end() ? std::nullopt : std::optional<size_t>(least->limit);
}

std::optional<size_t> available_memory(const std::string& root) {
  std::optional<size_t> available = meminfo("MemAvailable", root);
  for (const GroupMemory& group : limiting_groups(root))
    available = std::min(available.value_or(group.left), group.left);
  return available;
}

}  // namespace megalith
