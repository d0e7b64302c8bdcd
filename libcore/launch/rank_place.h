#pragma once

#include <string>
#include <vector>

namespace megalith {

/// Where a rank runs. The ranks exchange their places.
struct RankPlace {
  std::string host = {};       // for messages
  std::string machine = {};    // equal for processes that share cores, even if their host names differ
  std::string address = {};    // of its network interface
  std::vector<int> cpus = {};  // those that the rank may use

  template <class V>
  void members(V&& visit) {
    visit(host, machine, address, cpus);
  }
};

/// The place of this process.
RankPlace this_place(const std::string& address);

/// The number of ranks on the machine of `rank`.
int ranks_beside(const std::vector<RankPlace>&, int rank);
/// The number of lower ranks on the machine of `rank`.
int number_beside(const std::vector<RankPlace>&, int rank);

/// The number of threads for `rank`, at least 1. Each CPU is divided equally among the ranks of its machine
/// that may use that CPU.
int cpu_share(const std::vector<RankPlace>&, int rank);

}  // namespace megalith
