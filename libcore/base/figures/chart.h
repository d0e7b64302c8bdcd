#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace megalith {

using ChartPoints = std::map<int64_t, double>;  // value by iteration

/// Replaces each value by the mean of a window around it. The window has a twentieth of all points, at least
/// five, with as many points on the left as on the right, so that the curve does not shift. At the end the
/// window has no points on the right: the last value is a mean, too. Returns an empty curve for fewer than
/// ten points, which need no smoothing.
ChartPoints smoothed(const ChartPoints& points);
/// Like smoothed(), with medians instead of means, so that a few outliers do not move the line. At the
/// beginning, too, the window is shortened on one side only, so that an outlier at the first point does not
/// move the line either.
ChartPoints running_medians(const ChartPoints& points);

/// The part of a run that one log covers: the iterations after `start`, up to and including `end`.
struct LoggedStretch {
  int64_t start = 0, end = std::numeric_limits<int64_t>::max();
};

/// The mean in the last line of a run's log, if the log has one line for every `interval` iterations; nothing
/// if the log has no line yet.
std::optional<double> last_logged_mean(const ChartPoints& points, int64_t interval,
                                       LoggedStretch stretch = {});

}  // namespace megalith
