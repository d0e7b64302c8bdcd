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
  kDottedLine,  // few measurements: each is marked
  kFaintLine,   // the raw values behind a smoothed line
  kFaintDots,   // dots far from every line do not stretch the scale and are drawn at its edge
};

/// One curve. `points` and the texts belong to the caller and must outlive the call; values are finite. A
/// series without points is left out of the picture and its legend; one without a name, out of the legend.
struct ChartSeries {
  const char* name;
  const char* color;  // as SVG writes it
  const ChartPoints* points;
  ChartMark mark = ChartMark::kLine;
};

/// The texts of a picture.
struct ChartNames {
  std::string title;  // for those who cannot see it: "Loss by iteration"
  std::string value;  // of the vertical axis: "nats a token"; the horizontal one is iterations
};

/// Curves over iterations, as an SVG element for a page that styles the classes grid, x, y, axis, legend and
/// faint. Long curves are thinned to what a screen shows.
std::string chart_svg(const ChartNames& names, const std::vector<ChartSeries>& series);
/// The same as a separate file.
std::string chart_file(const ChartNames& names, const std::vector<ChartSeries>& series);

/// The mean of the points around each one: a twentieth of all, at least five, with equally many on either
/// side, so that a line does not shift. Empty for fewer than ten points, which need no smoothing.
ChartPoints smoothed(const ChartPoints& points);
/// Smooths with medians instead, so that a few points far off do not move the line. Nor do the first and the
/// last point: their windows reach to one side.
ChartPoints running_medians(const ChartPoints& points);

/// Iterations that one run made: those after `start`, up to `end`.
struct LoggedStretch {
  int64_t start = 0, end = std::numeric_limits<int64_t>::max();
};

/// The mean shown by the last line of a run's log, which has one line in `interval` iterations; nothing if
/// there is no line.
std::optional<double> last_logged_mean(const ChartPoints& points, int64_t interval,
                                       LoggedStretch stretch = {});

}  // namespace megalith
