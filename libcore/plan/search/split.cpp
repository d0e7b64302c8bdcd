#include "libcore/plan/search/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>

namespace megalith {
namespace {

/// The most layers, from 1 on, with which a stage takes no longer than `slowest`.
int layers_within(const StageLimit& stage, double slowest) {
  const double layers = std::floor(slowest - stage.extra);
  return static_cast<int>(std::clamp(layers, 1.0, static_cast<double>(stage.most)));
}

/// The layers of all stages when none takes longer than `slowest`; their sum is at most `layers`, unless even
/// one layer a stage is more.
std::vector<int> filled(int layers, std::span<const StageLimit> stages) {
  std::vector<int> out(stages.size(), 1);
  constexpr int kHalvings = 60;
  double low = 0, high = layers;
  for (const StageLimit& stage : stages) high = std::max(high, layers + stage.extra);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    int64_t sum = 0;
    for (const StageLimit& stage : stages) sum += layers_within(stage, middle);
    (sum <= layers ? low : high) = middle;
  }
  for (size_t i = 0; i < stages.size(); ++i) out[i] = layers_within(stages[i], low);
  return out;
}

}  // namespace

// Each layer goes to the stage that is then the fastest. For any convex cost of a stage's time this is
// optimal, because what a further layer adds to a stage grows with the stage's time: so neither the slowest
// stage nor the sum of squares can be smaller.
std::vector<int> split_layers(int layers, std::span<const StageLimit> stages) {
  int64_t most = 0;
  for (const StageLimit& stage : stages) most += stage.most;
  if (layers < static_cast<int>(stages.size()) || layers > most) return {};
  std::vector<int> out = filled(layers, stages);
  using Next = std::tuple<double, size_t>;  // a stage's time with one more layer; stages from the last one on
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next;
  const auto offer = [&](size_t from_end) {
    const size_t stage = stages.size() - 1 - from_end;
    if (out[stage] < stages[stage].most) next.emplace(out[stage] + 1 + stages[stage].extra, from_end);
  };
  for (size_t i = 0; i < stages.size(); ++i) offer(i);
  for (int left = layers - std::accumulate(out.begin(), out.end(), 0); left > 0; --left) {
    const size_t from_end = std::get<size_t>(next.top());
    next.pop();
    ++out[stages.size() - 1 - from_end];
    offer(from_end);
  }
  return out;
}

}  // namespace megalith
