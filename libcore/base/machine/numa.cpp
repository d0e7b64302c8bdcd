#include "libcore/base/machine/numa.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include <sched.h>

#include "libcore/base/text.h"

namespace megalith {
namespace {

/// The CPUs on which this process may run.
std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<size_t>(cpu), &mask)) cpus.push_back(cpu);
  return cpus;
}

/// Whether a list of the system's, "0-3,8,10-11", names this CPU.
bool names(const std::string& list, int cpu) {
  for (const std::string& range : split(std::string(trim(list)), ',')) {
    const auto dash = range.find('-');
    const auto first = parse_int(range.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_int(range.substr(dash + 1));
    if (first && last && *first <= cpu && cpu <= *last) return true;
  }
  return false;
}

}  // namespace

std::vector<NumaNode> numa_nodes(const std::string& root) {
  const std::vector<int> allowed = allowed_cpus();
  std::vector<NumaNode> nodes;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(root + "/sys/devices/system/node", none)) {
    const std::string name = entry.path().filename().string();
    const auto number = name.starts_with("node") ? parse_int(name.substr(4)) : std::nullopt;
    if (!number) continue;
    std::ifstream in(entry.path() / "cpulist");
    std::string list;
    std::getline(in, list);
    NumaNode node{.number = static_cast<int>(*number)};
    for (const int cpu : allowed)
      if (names(list, cpu)) node.cpus.push_back(cpu);
    if (!node.cpus.empty()) nodes.push_back(std::move(node));
  }
  std::ranges::sort(nodes, {}, &NumaNode::number);
  if (nodes.empty()) nodes.push_back({.number = 0, .cpus = allowed});
  return nodes;
}

std::optional<NumaNode> node_of_rank(const std::vector<NumaNode>& nodes, int rank, int ranks, int threads) {
  const auto count = static_cast<int>(nodes.size());
  if (count < 2 || ranks < count) return std::nullopt;
  const int number = rank * count / ranks;
  int sharers = 0;
  for (int other = 0; other < ranks; ++other) sharers += other * count / ranks == number ? 1 : 0;
  const NumaNode& node = nodes[static_cast<size_t>(number)];
  if (static_cast<int>(node.cpus.size()) < sharers * threads) return std::nullopt;
  return node;
}

bool stay_on(const NumaNode& node) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : node.cpus) CPU_SET(static_cast<size_t>(cpu), &mask);
  return ::sched_setaffinity(0, sizeof mask, &mask) == 0;
}

}  // namespace megalith
