#include "libcore/plan/search/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

namespace megalith {
namespace {

/// The most layers, from 1 on, with which a stage takes no longer than `slowest`.
int layers_within(const StageLimit& stage, double slowest) {
  const double layers = std::floor(slowest - stage.extra);
  return static_cast<int>(std::clamp(layers, 1.0, static_cast<double>(stage.most)));
}

/// Neighbouring stages that are alike; a long pipeline has many of these, and two ends.
struct AlikeStages {
  StageLimit stage;
  int64_t count;
};
std::vector<AlikeStages> alike(std::span<const StageLimit> stages) {
  std::vector<AlikeStages> out;
  for (const StageLimit& stage : stages) {
    const bool same =
        !out.empty() && out.back().stage.extra == stage.extra && out.back().stage.most == stage.most;
    if (same)
      ++out.back().count;
    else
      out.push_back({stage, 1});
  }
  return out;
}

/// The layers of all stages when none takes longer than `slowest`; their sum is at most `layers`, unless even
/// one layer a stage is more.
std::vector<int> filled(int layers, std::span<const StageLimit> stages) {
  std::vector<int> out(stages.size(), 1);
  constexpr int kHalvings = 60;
  double low = 0, high = layers;
  const std::vector<AlikeStages> kinds = alike(stages);
  for (const AlikeStages& kind : kinds) high = std::max(high, layers + kind.stage.extra);
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    int64_t sum = 0;
    for (const AlikeStages& kind : kinds) sum += kind.count * layers_within(kind.stage, middle);
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
  std::vector<Next> offers;
  const auto with_one_more = [&](size_t from_end) {
    const size_t stage = stages.size() - 1 - from_end;
    return Next{out[stage] + 1 + stages[stage].extra, from_end};
  };
  const auto has_room = [&](size_t from_end) {
    const size_t stage = stages.size() - 1 - from_end;
    return out[stage] < stages[stage].most;
  };
  for (size_t i = 0; i < stages.size(); ++i)
    if (has_room(i)) offers.push_back(with_one_more(i));
  std::priority_queue<Next, std::vector<Next>, std::greater<>> next({}, std::move(offers));
  for (int left = layers - std::accumulate(out.begin(), out.end(), 0); left > 0; --left) {
    const size_t from_end = std::get<size_t>(next.top());
    next.pop();
    ++out[stages.size() - 1 - from_end];
    if (has_room(from_end)) next.push(with_one_more(from_end));
  }
  return out;
}

}  // namespace megalith
