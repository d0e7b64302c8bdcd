#include "libcore/launch/rank_place.h"

#include <algorithm>
#include <set>
#include <utility>

#include <sched.h>
#include <unistd.h>

#include "libcore/base/machine/proc.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

// This file is the same in all containers of a machine, which share its cores, and differs between machines.
// A host name guarantees neither.
constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t mask;
  if (::sched_getaffinity(0, sizeof mask, &mask) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  return cpus;
}

}  // namespace

RankPlace this_place(const std::string& address, std::optional<int> local_rank) {
  RankPlace place{.host = host_name(),
                  .address = address,
                  .cpus = allowed_cpus(),
                  .cpu_limit = group_cpu_limit().value_or(0),
                  .local_rank = local_rank.value_or(-1)};
  place.machine = file_exists(kBootId) ? std::string(trim(read_file(kBootId))) : place.host;
  return place;
}

int ranks_beside(const std::vector<RankPlace>& places, int rank) {
  const std::string& machine = places[static_cast<size_t>(rank)].machine;
  return static_cast<int>(
      std::count_if(places.begin(), places.end(), [&](const RankPlace& p) { return p.machine == machine; }));
}

int number_beside(const std::vector<RankPlace>& places, int rank) {
  const std::string& machine = places[static_cast<size_t>(rank)].machine;
  std::set<std::pair<std::string, int>> seen;  // address and local rank
  const bool numbered = std::all_of(places.begin(), places.end(), [&](const RankPlace& p) {
    return p.machine != machine || (p.local_rank >= 0 && seen.emplace(p.address, p.local_rank).second);
  });
  if (numbered) return places[static_cast<size_t>(rank)].local_rank;
  return static_cast<int>(std::count_if(places.begin(), places.begin() + rank,
                                        [&](const RankPlace& p) { return p.machine == machine; }));
}

int cpu_share(const std::vector<RankPlace>& places, int rank) {
  const RankPlace& mine = places[static_cast<size_t>(rank)];
  double share = 0;
  for (const int cpu : mine.cpus)
    share +=
        1.0 / static_cast<double>(std::count_if(places.begin(), places.end(), [&](const RankPlace& p) {
          return p.machine == mine.machine && std::find(p.cpus.begin(), p.cpus.end(), cpu) != p.cpus.end();
        }));
  if (mine.cpu_limit > 0) {
    const auto sharing = std::count_if(places.begin(), places.end(), [&](const RankPlace& p) {
      return p.machine == mine.machine && p.host == mine.host;
    });
    share = std::min(share, mine.cpu_limit / static_cast<double>(sharing));
  }
  constexpr double kRounding = 1e-9;  // so that three thirds of a CPU count as a whole one
  return std::max(1, static_cast<int>(share + kRounding));
}

}  // namespace megalith
