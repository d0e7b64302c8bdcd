#include "libcore/base/machine/proc.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <thread>
#include <vector>

#include <sched.h>

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

/// A controller of a version of control groups.
struct GroupController {
  const char* name;  // in /proc/self/cgroup
  const char* folder;
};
constexpr const char* kGroups2 = "/sys/fs/cgroup";

/// How a version of control groups names its files of memory.
struct GroupVersion {
  GroupController controller;
  const char *limit, *used;
  const char* cache;  // in memory.stat: pages of files that the system drops when memory is needed
};
constexpr GroupVersion kVersions[] = {{{"", kGroups2}, "memory.max", "memory.current", "inactive_file"},
                                      {{"memory", "/sys/fs/cgroup/memory"},
                                       "memory.limit_in_bytes",
                                       "memory.usage_in_bytes",
                                       "total_inactive_file"}};

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

/// Calls `visit` with the folder of each control group that limits this process: its own and those that hold
/// it. In a container the path may be the host's, which is not there; the container's group is then the
/// controller's folder itself.
void each_group(const std::string& root, const GroupController& controller,
                const std::function<void(const std::string& folder)>& visit) {
  std::string path = group_path(root, controller.name);
  while (true) {
    visit(concat(root, controller.folder, path, '/'));
    if (path.empty() || path == "/") return;
    path.resize(path.rfind('/'));
  }
}

/// What a control group leaves of the memory.
struct GroupMemory {
  size_t limit, left;
};

/// The control groups that limit the memory of this process.
std::vector<GroupMemory> limiting_groups(const std::string& root) {
  std::vector<GroupMemory> groups;
  for (const GroupVersion& version : kVersions)
    each_group(root, version.controller, [&](const std::string& folder) {
      const auto limit = number_in(folder + version.limit), used = number_in(folder + version.used);
      if (!limit || !used) return;
      const size_t cached = std::min(*used, number_of(version.cache, folder + "memory.stat"));
      groups.push_back({*limit, *limit - std::min(*limit, *used - cached)});
    });
  return groups;
}

/// The quotient of two numbers of microseconds, "QUOTA PERIOD"; nothing if there is no quota ("max", -1).
std::optional<double> cpus_of(const std::string& text) {
  std::istringstream words(text);
  std::string quota, period;
  words >> quota >> period;
  const auto granted = parse_int(quota), each = parse_int(period);
  if (!granted || !each || *granted <= 0 || *each <= 0) return std::nullopt;
  return static_cast<double>(*granted) / static_cast<double>(*each);
}

std::string text_in(const std::string& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The CPUs on which this process may run.
int allowed_cpus() {
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));  // more than a mask can hold
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

std::optional<double> group_cpu_limit(const std::string& root) {
  std::optional<double> least;
  const auto take = [&](const std::string& quota_and_period) {
    const auto cpus = cpus_of(quota_and_period);
    if (cpus) least = std::min(least.value_or(*cpus), *cpus);
  };
  each_group(root, {"", kGroups2}, [&](const std::string& folder) { take(text_in(folder + "cpu.max")); });
  each_group(root, {"cpu", "/sys/fs/cgroup/cpu"}, [&](const std::string& folder) {
    take(text_in(folder + "cpu.cfs_quota_us") + " " + text_in(folder + "cpu.cfs_period_us"));
  });
  return least;
}

int usable_cpus(const std::string& root) {
  const int allowed = allowed_cpus();
  const std::optional<double> granted = group_cpu_limit(root);
  return granted ? std::max(1, static_cast<int>(std::min<double>(allowed, std::ceil(*granted)))) : allowed;
}

}  // namespace megalith
