#include "libcore/base/chart.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

struct Scale {
  double low = 0, high = 1;
  double step() const {  // 1, 2 or 5 times a power of ten, four to nine steps
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  }
};

Scale scale_of(const std::vector<ChartSeries>& series, bool iterations) {
  Scale scale{INFINITY, -INFINITY};
  for (const ChartSeries& s : series)
    for (const auto& [iteration, value] : *s.points) {
      const double v = iterations ? static_cast<double>(iteration) : value;
      scale.low = std::min(scale.low, v);
      scale.high = std::max(scale.high, v);
    }
  if (scale.low > scale.high) return {0, 1};
  // Also where they differ by what a step between two lines could not add.
  const double size = std::max(std::fabs(scale.low), std::fabs(scale.high));
  if (scale.high - scale.low <= 1e-9 * size) scale.high = scale.low + std::max(1.0, std::fabs(scale.low));
  return scale;
}

/// Width, height and margins of a picture, in its own units.
constexpr double kWidth = 760, kHeight = 300, kLeft = 64, kRight = 16, kTop = 14, kBottom = 34;
constexpr size_t kMostPoints = 1500;  // a longer curve is thinned: no screen shows more

class Picture {
 public:
  Picture(const std::vector<ChartSeries>& series, const std::string& attributes, const std::string& style)
      : x_(scale_of(series, true)), y_(scale_of(series, false)) {
    out_ = concat("<svg", attributes, " viewBox=\"0 0 ", kWidth, " ", kHeight, "\" role=\"img\">\n", style);
    grid();
    for (const ChartSeries& s : series)
      if (!s.points->empty()) curve(s);
    legend(series);
    out_ += "</svg>\n";
  }
  std::string text() && { return std::move(out_); }

 private:
  double px(double x) const { return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight); }
  double py(double y) const {
    return kHeight - kBottom - (y - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  static std::string at(double v) { return format_fixed(v, 1); }
  static std::string tick(double v) {
    const double size = std::fabs(v);
    if (size != 0 && (size < 1e-3 || size >= 1e6)) return format_scientific(v, 0);
    return format_fixed(v, size < 0.1 ? 4 : size < 10 ? 2 : 0);
  }

  void grid() {
    for (double step = y_.step(), y = std::ceil(y_.low / step) * step; y <= y_.high; y += step)
      out_ += concat("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", at(py(y)),
                     "\" y2=\"", at(py(y)), "\"/><text class=\"y\" x=\"", kLeft - 6, "\" y=\"", at(py(y) + 4),
                     "\">", tick(y), "</text>\n");
    for (double step = x_.step(), x = std::ceil(x_.low / step) * step; x <= x_.high; x += step)
      out_ += concat("<text class=\"x\" x=\"", at(px(x)), "\" y=\"", kHeight - kBottom + 18, "\">",
                     format_count(static_cast<int64_t>(x)), "</text>\n");
  }

  void curve(const ChartSeries& s) {
    const size_t every = s.points->size() / kMostPoints + 1;
    size_t number = 0;
    std::string path, dots;
    for (const auto& [iteration, value] : *s.points) {
      const bool last = ++number == s.points->size();
      if (number % every != 0 && !last) continue;
      const std::string x = at(px(static_cast<double>(iteration))), y = at(py(value));
      path += (path.empty() ? "M" : "L") + x + ' ' + y;
      if (s.dots)
        dots += concat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"3\" fill=\"", s.color,
                       "\"><title>iteration ", iteration, ": ", format_double(value), "</title></circle>");
    }
    out_ += concat("<path d=\"", path, "\" stroke=\"", s.color, "\"/>", dots, "\n");
  }

  void legend(const std::vector<ChartSeries>& series) {
    double x = kWidth - kRight;
    for (auto s = series.rbegin(); s != series.rend(); ++s) {
      if (s->points->empty()) continue;
      out_ += concat("<text class=\"legend\" x=\"", x, "\" y=\"", kTop + 10, "\" style=\"fill:", s->color,
                     "\">", s->name, "</text>\n");
      x -= 12 + 8.0 * static_cast<double>(std::string_view(s->name).size());
    }
  }

  std::string out_;
  Scale x_, y_;
};

constexpr const char* kStyle =
    "<style>text { font: 12px system-ui, sans-serif; fill: #64748b; } path { fill: none; stroke-width: 1.5; "
    "} .grid { "
    "stroke: #64748b; opacity: .2; } .y { text-anchor: end; } .x { text-anchor: middle; } .legend { "
    "text-anchor: end; "
    "font-weight: 600; }</style>\n";

}  // namespace

std::string chart_svg(const std::vector<ChartSeries>& series) {
  return Picture(series, "", "").text();
}

std::string chart_file(const std::vector<ChartSeries>& series) {
  return Picture(series, " xmlns=\"http://www.w3.org/2000/svg\"", kStyle).text();
}

}  // namespace megalith
