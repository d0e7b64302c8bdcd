#pragma once

#include <string>
#include <vector>

namespace megalith {

/// Where a rank runs, as it tells the others.
struct RankPlace {
  std::string host = {};       // for people
  std::string machine = {};    // the same for processes that share cores, whatever their hosts are called
  std::string address = {};    // of its interface
  std::vector<int> cpus = {};  // that it may use

  template <class V>
  void members(V&& visit) {
    visit(host, machine, address, cpus);
  }
};

/// The place of this process.
RankPlace this_place(const std::string& address);

/// How many ranks run on the machine of `rank`.
int ranks_beside(const std::vector<RankPlace>&, int rank);

/// Threads for `rank`: each CPU that it may use is divided by the ranks on its machine that may use it, too;
/// at least 1.
int cpu_share(const std::vector<RankPlace>&, int rank);

}  // namespace megalith
