#include "libcore/parallel/devices/wait_report.h"

#include <algorithm>
#include <map>
#include <utility>

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// A rank's first call of a group that is not done.
struct WaitOfRank {
  int rank;
  uint64_t number;
  std::string call;
  bool same_as(const WaitOfRank& other) const { return number == other.number && call == other.call; }
};

std::string text_of(const WaitOfRank& wait) {
  return wait.number == 0 ? std::string("in no call of it")
                          : concat("in ", wait.call, ", call ", wait.number);
}

/// The wait that most ranks share, the first of equals.
const WaitOfRank& usual(const std::vector<WaitOfRank>& waits) {
  const auto sharers = [&](const WaitOfRank& one) {
    return std::count_if(waits.begin(), waits.end(),
                         [&](const WaitOfRank& other) { return other.same_as(one); });
  };
  return *std::max_element(waits.begin(), waits.end(),
                           [&](const WaitOfRank& a, const WaitOfRank& b) { return sharers(a) < sharers(b); });
}

}  // namespace

std::string differing_call(const std::vector<WaitReport>& reports,
                           const std::function<std::string(int rank)>& name_of) {
  std::map<std::pair<std::string, std::vector<int>>, std::vector<WaitOfRank>> by_group;
  for (size_t rank = 0; rank < reports.size(); ++rank)
    for (const WaitReport::Group& group : reports[rank].groups)
      by_group[{group.name, group.ranks}].push_back({static_cast<int>(rank), group.number, group.call});
  for (const auto& [group, waits] : by_group) {
    const WaitOfRank& most = usual(waits);
    for (const WaitOfRank& wait : waits)
      if (!wait.same_as(most))
        return concat(group.first, ": ", name_of(wait.rank), " waits ", text_of(wait), ", ",
                      name_of(most.rank), ' ', text_of(most),
                      "; all ranks of a group have to make the same calls");
  }
  return {};
}

}  // namespace megalith
