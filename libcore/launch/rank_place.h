#pragma once

#include <optional>
#include <string>
#include <vector>

namespace megalith {

/// Where a rank runs. The ranks exchange their places.
struct RankPlace {
  std::string host = {};       // for messages
  std::string machine = {};    // equal for processes that share cores, even if their host names differ
  std::string address = {};    // of its network interface
  std::vector<int> cpus = {};  // those that the rank may use
  double cpu_limit = 0;        // CPUs whose time its control groups grant (group_cpu_limit()); 0: no limit
  int local_rank = -1;         // its place on its machine, as its launcher says; -1: unknown

  template <class V>
  void members(V&& visit) {
    visit(host, machine, address, cpus, cpu_limit, local_rank);
  }
};

/// The place of this process. `local_rank`: of its launcher.
RankPlace this_place(const std::string& address, std::optional<int> local_rank = {});

/// The number of ranks on the machine of `rank`.
int ranks_beside(const std::vector<RankPlace>&, int rank);
/// The place of `rank` among the ranks of its machine: its launcher's local rank, or the number of lower
/// ranks on the machine if one of the ranks has no local rank, or another one of the machine and the same
/// address has the same. Two containers of one machine may both count their ranks from 0.
int number_beside(const std::vector<RankPlace>&, int rank);

/// The number of threads for `rank`, at least 1. Each CPU is divided equally among the ranks of its machine
/// that may use that CPU. A limit of its control groups is divided equally among the ranks of its host name:
/// a container has a host name of its own, and of ranks that share one it is not known whether each has the
/// limit.
int cpu_share(const std::vector<RankPlace>&, int rank);

}  // namespace megalith
