#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace megalith {

/// Where a rank waits: its calls that are not done, in each of its groups.
struct WaitReport {
  struct Group {
    std::string name;
    std::vector<int> ranks;  // of its members, in the run
    uint64_t number = 0;     // of its first call that is not done; 0: all are
    std::string call;        // that call: "all_reduce of 8 fp32 (sum)"
    template <class V>
    void members(V&& visit) {
      visit(name, ranks, number, call);
    }
  };
  std::vector<Group> groups;
  template <class V>
  void members(V&& visit) {
    visit(groups);
  }
};

/// Names the rank whose call differs from those of the other ranks of its group: "tensor: rank 1 waits in
/// all_gather of 8 fp32, call 17, rank 0 in …". `reports`: of all ranks of the run. `name_of` gives a rank's
/// name. Empty if no rank differs.
std::string differing_call(const std::vector<WaitReport>& reports,
                           const std::function<std::string(int rank)>& name_of);

}  // namespace megalith
