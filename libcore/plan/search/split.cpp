#include "libcore/plan/search/split.h"

#include <algorithm>
#include <limits>

namespace megalith {

std::vector<int> split_layers(int layers, std::span<const StageLimit> stages) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  const size_t width = static_cast<size_t>(layers) + 1;
  struct Cell {
    double slowest = std::numeric_limits<double>::infinity(), squares = 0;
    int here = 0;
    bool operator<(const Cell& other) const {
      return slowest != other.slowest ? slowest < other.slowest : squares < other.squares;
    }
  };
  // best[i][l]: the best split of l layers over the stages from i on.
  std::vector<std::vector<Cell>> best(stages.size() + 1, std::vector<Cell>(width));
  best[stages.size()][0].slowest = 0;
  for (size_t i = stages.size(); i-- > 0;) {
    // The number of later stages, which need at least one layer each.
    const int after = static_cast<int>(stages.size() - i) - 1;
    for (int left = after + 1; left <= layers; ++left)
      for (int here = 1; here <= std::min(stages[i].most, left - after); ++here) {
        const Cell& rest = best[i + 1][static_cast<size_t>(left - here)];
        if (rest.slowest == kNever) continue;
        const double cost = here + stages[i].extra;
        const Cell cell{std::max(rest.slowest, cost), rest.squares + cost * cost, here};
        if (cell < best[i][static_cast<size_t>(left)]) best[i][static_cast<size_t>(left)] = cell;
        // More layers on this stage are only slower.
        if (cost > best[i][static_cast<size_t>(left)].slowest) break;
      }
  }
  std::vector<int> out;
  if (best[0][static_cast<size_t>(layers)].slowest == kNever) return out;
  for (size_t i = 0, left = static_cast<size_t>(layers); i < stages.size(); ++i) {
    out.push_back(best[i][left].here);
    left -= static_cast<size_t>(out.back());
  }
  return out;
}

}  // namespace megalith
