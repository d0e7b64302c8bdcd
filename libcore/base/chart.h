#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace megalith {

using ChartPoints = std::map<int64_t, double>;  // value by iteration

/// One curve. `points` and the texts belong to the caller and must outlive the call; values are finite. A
/// series without points is left out of the picture and of its legend.
struct ChartSeries {
  const char* name;
  const char* color;  // as SVG writes it
  const ChartPoints* points;
  bool dots;  // few measurements: each is marked
};

/// Curves over iterations as an SVG element for a page that styles the classes grid, x, y and legend. Long
/// curves are thinned to what a screen shows.
std::string chart_svg(const std::vector<ChartSeries>& series);
/// The same as a file of its own.
std::string chart_file(const std::vector<ChartSeries>& series);

}  // namespace megalith
