#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace megalith {

using ChartPoints = std::map<int64_t, double>;  // value by iteration

enum class ChartMark {
  kLine,
  kDottedLine,  // a line with a dot at each point, for few measurements
  kFaintLine,   // the raw values behind a smoothed line
  kFaintDots,   // dots; those far from all lines are drawn at the edge and do not widen the scale
};

/// One curve. `points` and the texts belong to the caller and must outlive the call; values are finite. A
/// series without points is left out of the picture and its legend; a series with an empty name is left out
/// of the legend only.
struct ChartSeries {
  const char* name;
  const char* color;  // a color in SVG's notation
  const ChartPoints* points;
  ChartMark mark = ChartMark::kLine;
};

/// The texts of a picture.
struct ChartNames {
  std::string title;  // read by screen readers: "Loss by iteration"
  std::string value;  // label of the vertical axis: "nats a token"; the horizontal one shows iterations
};

/// Draws curves over iterations as an SVG element for an HTML page, which must style the classes grid, x, y,
/// axis, legend and faint. A long curve is thinned to as many points as a screen can show.
std::string chart_svg(const ChartNames& names, const std::vector<ChartSeries>& series);
/// The contents of an SVG file with the picture that chart_svg() draws.
std::string chart_file(const ChartNames& names, const std::vector<ChartSeries>& series);

/// Replaces each value by the mean of a window around it. The window has a twentieth of all points, at least
/// five, with as many points on the left as on the right, so that the curve does not shift. Returns an empty
/// curve for fewer than ten points, which need no smoothing.
ChartPoints smoothed(const ChartPoints& points);
/// Like smoothed(), with medians instead of means, so that a few outliers do not move the line. Near the ends
/// the window is shortened on one side only, so that an outlier at the first or last point does not move the
/// line either.
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
