#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libcore/base/figures/chart.h"

namespace megalith {

enum class ChartMark {
  kLine,
  kDottedLine,  // a line with a dot at each point, for few measurements
  kFaintLine,   // the raw values behind a smoothed line
  kFaintDots,   // dots; those far from all lines are drawn at the edge and do not widen the scale
};

/// One curve. `points` belong to the caller and must outlive the call; values are finite. A series without
/// points is left out of the picture and its legend; a series with an empty name is left out of the legend
/// only.
struct ChartSeries {
  std::string name;
  const char* color;  // a color in SVG's notation
  const ChartPoints* points;
  ChartMark mark = ChartMark::kLine;
  std::string hover = {};  // its name in the texts under the pointer, if it has none in the legend
};

/// The texts of a picture, and what its horizontal axis shows.
struct ChartNames {
  std::string title;  // read by screen readers: "Loss by iteration"
  std::string value;  // label of the vertical axis: "nats a token"
  std::string key = "iteration";
  double unit = 1;          // a key of the points, divided by this, is the number that the axis shows
  std::string second = {};  // label of a second row of numbers at that axis: "tokens"
  const ChartPoints* below = nullptr;  // the second number of each key; rising. Null: no second row
};

/// The contents of an SVG file with the curves. A long curve is thinned to as many points as a screen can
/// show.
std::string chart_file(const ChartNames& names, const std::vector<ChartSeries>& series);

/// The same picture for an HTML page, once for wide and once for narrow screens, with the values of all
/// curves under the pointer. The page must hold chart_style().
std::string chart_html(const ChartNames& names, const std::vector<ChartSeries>& series);
std::string chart_style();

/// The distance between the numbers of an axis, 1, 2 or 5 times a power of ten, so that `range` has about
/// `parts` of them.
double axis_step(double range, double parts);
/// A number for a reader, in a few characters: "12.5k", "3.2M".
std::string short_count(double value);

}  // namespace megalith
