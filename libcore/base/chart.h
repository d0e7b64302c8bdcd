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
  kFaintDots,   // those far from every line do not stretch the scale and lie at its edge
};

/// One curve. `points` and the texts belong to the caller and must outlive the call; values are finite. A
/// series without points is left out of the picture and of its legend; one without a name, of the legend.
struct ChartSeries {
  const char* name;
  const char* color;  // as SVG writes it
  const ChartPoints* points;
  ChartMark mark = ChartMark::kLine;
};

/// What a picture is of.
struct ChartNames {
  std::string title;  // for who cannot see it: "Loss by iteration"
  std::string value;  // of the upright axis: "nats a token"; the other one is iterations
};

/// Curves over iterations as an SVG element for a page that styles the classes grid, x, y, axis, legend and
/// faint. Long curves are thinned to what a screen shows.
std::string chart_svg(const ChartNames& names, const std::vector<ChartSeries>& series);
/// The same as a file of its own.
std::string chart_file(const ChartNames& names, const std::vector<ChartSeries>& series);

/// The mean of the points around each one, a twentieth of all and at least five; as many on either side, so
/// that a line stays where it is. Empty for fewer than ten points: the raw ones say all.
ChartPoints smoothed(const ChartPoints& points);
/// Smooths with medians instead, so that a few points far off do not move the line, nor do the first and the
/// last one: their windows reach to one side.
ChartPoints running_medians(const ChartPoints& points);

/// Iterations that one run made: those after `start`, up to `end`.
struct LoggedStretch {
  int64_t start = 0, end = std::numeric_limits<int64_t>::max();
};

/// The mean that the last line of a run's log showed, which has one line in `interval` iterations; nothing
/// when it has none.
std::optional<double> last_logged_mean(const ChartPoints& points, int64_t interval,
                                       LoggedStretch stretch = {});

}  // namespace megalith
