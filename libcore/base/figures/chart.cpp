#include "libcore/base/figures/chart.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "libcore/base/figures/quantile.h"

namespace megalith {
namespace {

/// How a window is shortened at the beginning of the curve, where its left side has too few points. At the
/// end only its right side is shortened.
enum class AtBegin { kShrinkBothSides, kCutOneSide };

/// Replaces each value by `centre` of the values in a window around it. On each side the window has a fixed
/// share of all points; near the ends it has fewer.
template <class Centre>
ChartPoints around_each(const ChartPoints& points, AtBegin begin, const Centre& centre) {
  constexpr size_t kMinSide = 2, kShare = 40;
  std::vector<double> values;
  for (const auto& [iteration, value] : points) values.push_back(value);
  const size_t max_side = std::max(kMinSide, values.size() / kShare);
  ChartPoints out;
  size_t i = 0;
  for (const auto& [iteration, value] : points) {
    const size_t before = std::min(max_side, i);
    size_t after = std::min(max_side, values.size() - 1 - i);
    if (begin == AtBegin::kShrinkBothSides) after = std::min(after, before);
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(i);
    out[iteration] = centre(std::vector<double>(at - static_cast<std::ptrdiff_t>(before),
                                                at + static_cast<std::ptrdiff_t>(after + 1)));
    ++i;
  }
  return out;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

}  // namespace

ChartPoints smoothed(const ChartPoints& points) {
  constexpr size_t kFew = 10;
  return points.size() < kFew ? ChartPoints() : around_each(points, AtBegin::kShrinkBothSides, mean);
}

ChartPoints running_medians(const ChartPoints& points) {
  return around_each(points, AtBegin::kCutOneSide,
                     [](std::vector<double> values) { return quantile(std::move(values), 0.5); });
}

std::optional<double> last_logged_mean(const ChartPoints& points, int64_t interval, LoggedStretch stretch) {
  if (points.empty()) return std::nullopt;
  const int64_t end = std::min(points.rbegin()->first, stretch.end) / interval * interval;
  const auto first = points.upper_bound(std::max(end - interval, stretch.start)),
             last = points.upper_bound(end);
  if (end <= stretch.start || first == last) return std::nullopt;
  double sum = 0;
  for (auto point = first; point != last; ++point) sum += point->second;
  return sum / static_cast<double>(std::distance(first, last));
}

}  // namespace megalith
