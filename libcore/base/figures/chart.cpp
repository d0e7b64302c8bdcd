#include "libcore/base/figures/chart.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

struct Scale {
  double low = 0, high = 1;
  double step() const {  // 1, 2 or 5 times a power of ten, so that the scale has four to nine steps
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  }
};

constexpr double kEndless = std::numeric_limits<double>::infinity();

void stretch(Scale& scale, double value) {
  scale.low = std::min(scale.low, value);
  scale.high = std::max(scale.high, value);
}

/// Widens the scale to hold the dots, except those far from the lines: the few outliers, such as the first
/// step of a run, would flatten the lines.
void stretch_by_dots(Scale& scale, const std::vector<ChartSeries>& series) {
  constexpr double kFar = 0.5;  // share of the lines' largest absolute value
  const double reach = kFar * std::max(-scale.low, scale.high);
  const bool no_line = scale.low > scale.high;
  const Scale near{no_line ? -kEndless : scale.low - reach, no_line ? kEndless : scale.high + reach};
  for (const ChartSeries& s : series)
    for (const auto& [iteration, value] : *s.points)
      if (s.mark == ChartMark::kFaintDots && value >= near.low && value <= near.high) stretch(scale, value);
}

Scale scale_of(const std::vector<ChartSeries>& series, bool iterations) {
  Scale scale{kEndless, -kEndless};
  for (const ChartSeries& s : series)
    for (const auto& [iteration, value] : *s.points) {
      if (iterations) stretch(scale, static_cast<double>(iteration));
      if (!iterations && s.mark != ChartMark::kFaintDots) stretch(scale, value);
    }
  if (!iterations) stretch_by_dots(scale, series);
  if (scale.low > scale.high) return {0, 1};
  // Widens the scale if all values are nearly equal: one step would then be too small to change a value.
  const double size = std::max(std::fabs(scale.low), std::fabs(scale.high));
  if (scale.high - scale.low <= 1e-9 * size) scale.high = scale.low + std::max(1.0, std::fabs(scale.low));
  return scale;
}

/// A picture's width, height and margins in its own units. The top margin holds the legend, so that it never
/// covers a curve.
constexpr double kWidth = 760, kHeight = 320, kLeft = 84, kRight = 16, kTop = 34, kBottom = 52;
constexpr size_t kMaxPoints = 1500;  // a longer curve is thinned: no screen shows more

/// The numbers of one axis: all fixed or all scientific, since mixed ones are hard to compare.
class Ticks {
 public:
  explicit Ticks(const Scale& scale) {
    const double size = std::max(std::fabs(scale.low), std::fabs(scale.high));
    const double power = std::floor(std::log10(scale.step()) + 1e-9);
    scientific_ = size >= 1e7 || (size > 0 && size < 1e-3);
    // As many decimals as are needed to tell two neighbouring steps apart.
    decimals_ =
        static_cast<int>(std::clamp(scientific_ ? std::floor(std::log10(size)) - power : -power, 0.0, 8.0));
  }
  std::string text(double value) const {
    if (scientific_) return format_scientific(value, decimals_);
    if (decimals_ == 0) return format_count(std::llround(value));
    return format_fixed(value, decimals_);
  }

 private:
  bool scientific_;
  int decimals_;
};

class Picture {
 public:
  Picture(const ChartNames& names, const std::vector<ChartSeries>& series, const std::string& attributes,
          const std::string& style)
      : x_(scale_of(series, true)), y_(scale_of(series, false)) {
    const std::string title = escape_markup(names.title);
    out_ = concat("<svg", attributes, " viewBox=\"0 0 ", kWidth, " ", kHeight,
                  "\" role=\"img\" aria-label=\"", title, "\">\n<title>", title, "</title>\n", style);
    grid();
    axes(names);
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

  void grid() {
    const Ticks ticks(y_);
    for (double step = y_.step(), y = std::ceil(y_.low / step) * step; y <= y_.high; y += step)
      out_ += concat("<line class=\"grid\" x1=\"", kLeft, "\" x2=\"", kWidth - kRight, "\" y1=\"", at(py(y)),
                     "\" y2=\"", at(py(y)), "\"/><text class=\"y\" x=\"", kLeft - 6, "\" y=\"", at(py(y) + 4),
                     "\">", ticks.text(y), "</text>\n");
    for (double step = std::max(1.0, x_.step()), x = std::ceil(x_.low / step) * step; x <= x_.high; x += step)
      out_ += concat("<text class=\"x\" x=\"", at(px(x)), "\" y=\"", kHeight - kBottom + 18, "\">",
                     format_count(static_cast<int64_t>(x)), "</text>\n");
  }

  void axes(const ChartNames& names) {
    const double middle = (kTop + kHeight - kBottom) / 2;
    out_ += concat("<text class=\"axis\" x=\"", at((kLeft + kWidth - kRight) / 2), "\" y=\"", kHeight - 8,
                   "\">iteration</text>\n<text class=\"axis\" transform=\"translate(14 ", at(middle),
                   ") rotate(-90)\">", escape_markup(names.value), "</text>\n");
  }

  void curve(const ChartSeries& s) {
    const size_t every = s.points->size() / kMaxPoints + 1;
    const bool faint = s.mark == ChartMark::kFaintLine || s.mark == ChartMark::kFaintDots;
    const bool marks = s.mark == ChartMark::kDottedLine || s.mark == ChartMark::kFaintDots;
    size_t number = 0;
    std::string path, dots;
    for (const auto& [iteration, value] : *s.points) {
      const bool last = ++number == s.points->size();
      if (number % every != 0 && !last) continue;
      const std::string x = at(px(static_cast<double>(iteration))),
                        y = at(py(std::clamp(value, y_.low, y_.high)));
      path += concat(path.empty() ? "M" : "L", x, ' ', y);
      if (marks)
        dots += concat("<circle cx=\"", x, "\" cy=\"", y, "\" r=\"", faint ? 1.5 : 3, "\" fill=\"", s.color,
                       "\"><title>iteration ", iteration, ": ", format_double(value), "</title></circle>");
    }
    if (faint) out_ += "<g class=\"faint\">";
    if (s.mark != ChartMark::kFaintDots) out_ += concat("<path d=\"", path, "\" stroke=\"", s.color, "\"/>");
    out_ += dots + (faint ? "</g>\n" : "\n");
  }

  void legend(const std::vector<ChartSeries>& series) {
    double x = kWidth - kRight;
    for (auto s = series.rbegin(); s != series.rend(); ++s) {
      if (s->points->empty() || *s->name == '\0') continue;
      out_ += concat("<text class=\"legend\" x=\"", x, "\" y=\"", kTop - 14, "\" style=\"fill:", s->color,
                     "\">", s->name, "</text>\n");
      x -= 12 + 8.0 * static_cast<double>(std::string_view(s->name).size());
    }
  }

  std::string out_;
  Scale x_, y_;
};

constexpr const char* kStyle =
    "<style>text { font: 12px system-ui, sans-serif; fill: #64748b; } path { fill: none; stroke-width: 1.5; "
    "} "
    ".grid { stroke: #64748b; opacity: .2; } .faint { opacity: .3; } .y { text-anchor: end; } "
    ".x, .axis { text-anchor: middle; } .legend { text-anchor: end; font-weight: 600; }</style>\n";

/// How a window is shortened near the ends of the curve, where one side has too few points.
enum class AtEnds { kShrinkBothSides, kCutOneSide };

/// Replaces each value by `centre` of the values in a window around it. On each side the window has a fixed
/// share of all points; near the ends it has fewer.
template <class Centre>
ChartPoints around_each(const ChartPoints& points, AtEnds ends, const Centre& centre) {
  constexpr size_t kMinSide = 2, kShare = 40;
  std::vector<double> values;
  for (const auto& [iteration, value] : points) values.push_back(value);
  const size_t max_side = std::max(kMinSide, values.size() / kShare);
  ChartPoints out;
  size_t i = 0;
  for (const auto& [iteration, value] : points) {
    size_t before = std::min(max_side, i), after = std::min(max_side, values.size() - 1 - i);
    if (ends == AtEnds::kShrinkBothSides) before = after = std::min(before, after);
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

std::string chart_svg(const ChartNames& names, const std::vector<ChartSeries>& series) {
  return Picture(names, series, "", "").text();
}

std::string chart_file(const ChartNames& names, const std::vector<ChartSeries>& series) {
  return Picture(names, series, " xmlns=\"http://www.w3.org/2000/svg\"", kStyle).text();
}

ChartPoints smoothed(const ChartPoints& points) {
  constexpr size_t kFew = 10;
  return points.size() < kFew ? ChartPoints() : around_each(points, AtEnds::kShrinkBothSides, mean);
}

ChartPoints running_medians(const ChartPoints& points) {
  return around_each(points, AtEnds::kCutOneSide,
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
