#include "libcore/base/figures/picture.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

struct Scale {
  double low = 0, high = 1;
  double step(double parts) const { return axis_step(high - low, parts); }
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

Scale scale_of(const std::vector<ChartSeries>& series, bool keys) {
  Scale scale{kEndless, -kEndless};
  for (const ChartSeries& s : series)
    for (const auto& [iteration, value] : *s.points) {
      if (keys) stretch(scale, static_cast<double>(iteration));
      if (!keys && s.mark != ChartMark::kFaintDots) stretch(scale, value);
    }
  if (!keys) stretch_by_dots(scale, series);
  if (scale.low > scale.high) return {0, 1};
  // Widens the scale if all values are nearly equal: one step would then be too small to change a value.
  const double size = std::max(std::fabs(scale.low), std::fabs(scale.high));
  if (scale.high - scale.low <= 1e-9 * size) scale.high = scale.low + std::max(1.0, std::fabs(scale.low));
  return scale;
}

/// A picture's measures in its own units. The top margin holds the legend, so that it never covers a curve;
/// the bottom margin grows if there is a second row of numbers.
struct Size {
  double width, height, left, right, top, bottom;
  double parts;  // about how many numbers the horizontal axis has
  size_t hits;   // the most places at which the pointer shows values
};
constexpr Size kWide{760, 320, 84, 16, 34, 52, 5, 240}, kNarrow{380, 280, 74, 12, 34, 48, 3, 100};
constexpr double kLine = 16, kSecondRow = 30, kLetter = 7.5, kBetween = 12;
constexpr size_t kMaxPoints = 1500;  // a longer curve is thinned: no screen shows more

/// The numbers of one axis: all fixed or all scientific, since mixed ones are hard to compare.
class Ticks {
 public:
  Ticks(const Scale& scale, double step) {
    const double size = std::max(std::fabs(scale.low), std::fabs(scale.high));
    const double power = std::floor(std::log10(step) + 1e-9);
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

/// The place on the key axis where a rising curve reaches `value`, interpolated between points.
double key_of(const ChartPoints& rising, double value) {
  auto next = rising.begin();
  while (next != rising.end() && next->second < value) ++next;
  if (next == rising.begin()) return static_cast<double>(next->first);
  if (next == rising.end()) return static_cast<double>(rising.rbegin()->first);
  const auto before = std::prev(next);
  const double share = (value - before->second) / (next->second - before->second);
  return static_cast<double>(before->first) + share * static_cast<double>(next->first - before->first);
}

/// A value as the pointer shows it.
std::string value_text(double value) {
  const double size = std::fabs(value);
  if (size >= 1e5) return format_count(std::llround(value));
  if (size == 0 || size >= 1e-2) return format_fixed(value, size >= 100 ? 1 : 4);
  return format_scientific(value, 3);
}

class Picture {
 public:
  struct Look {
    Size size = kWide;
    std::string attributes, style = {};
    bool hover = false;
  };
  Picture(const ChartNames& names, const std::vector<ChartSeries>& series, const Look& look)
      : names_(names), size_(look.size), x_(scale_of(series, true)), y_(scale_of(series, false)) {
    size_.top += kLine * static_cast<double>(legend_rows(series).size() - 1);
    if (second()) size_.bottom += kSecondRow, size_.height += kSecondRow;
    const std::string title = escape_markup(names.title);
    out_ = concat("<svg", look.attributes, " viewBox=\"0 0 ", size_.width, " ", size_.height,
                  "\" role=\"img\" aria-label=\"", title, "\">\n<title>", title, "</title>\n", look.style);
    grid();
    if (second()) second_row();
    axes();
    if (look.hover) hits(series);
    for (const ChartSeries& s : series)
      if (!s.points->empty()) curve(s);
    legend(series);
    out_ += "</svg>\n";
  }
  std::string text() && { return std::move(out_); }

 private:
  bool second() const { return names_.below && names_.below->size() > 1; }
  double right_end() const { return size_.width - size_.right; }
  double bottom_end() const { return size_.height - size_.bottom; }
  double px(double x) const {
    return size_.left + (x - x_.low) / (x_.high - x_.low) * (right_end() - size_.left);
  }
  double py(double y) const {
    return bottom_end() - (y - y_.low) / (y_.high - y_.low) * (bottom_end() - size_.top);
  }
  static std::string at(double v) { return format_fixed(v, 1); }

  /// A number below the axis, moved so that the picture's edge does not cut it.
  void number_below(double x, double y, const std::string& text) {
    const double half = kLetter / 2 * static_cast<double>(text.size());
    out_ += concat("<text class=\"x\" x=\"", at(std::min(x, size_.width - half)), "\" y=\"", y, "\">", text,
                   "</text>\n");
  }
  void grid() {
    const double rise = y_.step(5);
    const Ticks ticks(y_, rise);
    for (double y = std::ceil(y_.low / rise) * rise; y <= y_.high; y += rise)
      out_ += concat("<line class=\"grid\" x1=\"", size_.left, "\" x2=\"", right_end(), "\" y1=\"", at(py(y)),
                     "\" y2=\"", at(py(y)), "\"/><text class=\"y\" x=\"", size_.left - 6, "\" y=\"",
                     at(py(y) + 4), "\">", ticks.text(y), "</text>\n");
    const Scale shown{x_.low / names_.unit, x_.high / names_.unit};
    const double least = names_.unit == 1 ? 1 : 0, step = std::max(least, shown.step(size_.parts));
    const Ticks below(shown, step);
    for (double x = std::ceil(shown.low / step) * step; x <= shown.high; x += step)
      number_below(px(x * names_.unit), bottom_end() + 18,
                   shown.high >= 1e5 ? short_count(x) : below.text(x));
  }
  void second_row() {
    const Scale scale{names_.below->begin()->second, names_.below->rbegin()->second};
    const double step = scale.step(size_.parts);
    for (double value = std::ceil(scale.low / step) * step; value <= scale.high; value += step)
      number_below(px(key_of(*names_.below, value)), bottom_end() + 18 + kSecondRow, short_count(value));
  }

  void axes() {
    const double middle = (size_.top + bottom_end()) / 2;
    const auto label = [&](double y, const std::string& text) {
      out_ += concat("<text class=\"axis\" x=\"", at((size_.left + right_end()) / 2), "\" y=\"", y, "\">",
                     escape_markup(text), "</text>\n");
    };
    label(bottom_end() + 32, names_.key);
    if (second()) label(bottom_end() + 32 + kSecondRow, names_.second);
    out_ += concat("<text class=\"axis\" transform=\"translate(12 ", at(middle), ") rotate(-90)\">",
                   escape_markup(names_.value), "</text>\n");
  }

  std::string place_text(int64_t key) const {
    const double shown = static_cast<double>(key) / names_.unit;
    return concat(names_.key, ' ', names_.unit == 1 ? concat(key) : value_text(shown));
  }

  /// Transparent stripes, each of which shows the curves' values at its place while the pointer is over it.
  void hits(const std::vector<ChartSeries>& series) {
    std::set<int64_t> all;
    for (const ChartSeries& s : series)
      for (const auto& [key, value] : *s.points) all.insert(key);
    const std::vector<int64_t> keys(all.begin(), all.end());
    const size_t every = keys.size() / size_.hits + 1;
    for (size_t begin = 0; begin < keys.size(); begin += every) {
      const size_t end = std::min(begin + every, keys.size());
      const auto between = [&](size_t i) {  // the border in front of key i
        if (i == 0 || i == keys.size()) return i == 0 ? size_.left : right_end();
        return (px(static_cast<double>(keys[i - 1])) + px(static_cast<double>(keys[i]))) / 2;
      };
      out_ += concat("<rect class=\"hit\" x=\"", at(between(begin)), "\" y=\"", size_.top, "\" width=\"",
                     at(between(end) - between(begin)), "\" height=\"", at(bottom_end() - size_.top),
                     "\"><title>", escape_markup(values_text(series, keys[begin], keys[end - 1])),
                     "</title></rect>");
    }
    out_ += '\n';
  }
  std::string values_text(const std::vector<ChartSeries>& series, int64_t first, int64_t last) const {
    std::string out = place_text(last);
    if (second()) {
      const auto found = names_.below->upper_bound(last);
      if (found != names_.below->begin())
        out += concat(", ", short_count(std::prev(found)->second), ' ', names_.second);
    }
    for (const ChartSeries& s : series) {
      const auto after = s.points->upper_bound(last);
      if (after == s.points->begin() || std::prev(after)->first < first) continue;
      const std::string& name = !s.hover.empty() ? s.hover : s.name.empty() ? names_.value : s.name;
      out += concat("\n", name, ": ", value_text(std::prev(after)->second));
    }
    return out;
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
                       "\"><title>", place_text(iteration), ": ", format_double(value), "</title></circle>");
    }
    if (faint) out_ += "<g class=\"faint\">";
    if (s.mark != ChartMark::kFaintDots) out_ += concat("<path d=\"", path, "\" stroke=\"", s.color, "\"/>");
    out_ += dots + (faint ? "</g>\n" : "\n");
  }

  /// The series' name, as much of it as fits in the picture.
  std::string legend_text(const ChartSeries& s) const {
    return shortened(s.name, static_cast<size_t>(right_end() / kLetter) - 1);
  }
  double width_of(const ChartSeries& s) const {
    return kBetween + kLetter * static_cast<double>(legend_text(s).size());
  }
  /// The series of the legend, in as many rows as they need.
  std::vector<std::vector<const ChartSeries*>> legend_rows(const std::vector<ChartSeries>& series) const {
    std::vector<std::vector<const ChartSeries*>> rows(1);
    double left = right_end();
    for (const ChartSeries& s : series) {
      if (s.points->empty() || s.name.empty()) continue;
      if (width_of(s) > left && !rows.back().empty()) {
        rows.emplace_back();
        left = right_end();
      }
      left -= width_of(s);
      rows.back().push_back(&s);
    }
    return rows;
  }
  void legend(const std::vector<ChartSeries>& series) {
    double y = 20;
    for (const std::vector<const ChartSeries*>& row : legend_rows(series)) {
      double x = right_end();
      for (auto s = row.rbegin(); s != row.rend(); ++s) {
        out_ += concat("<text class=\"legend\" x=\"", at(x), "\" y=\"", y, "\" style=\"fill:", (*s)->color,
                       "\">", escape_markup(legend_text(**s)), "</text>\n");
        x -= width_of(**s);
      }
      y += kLine;
    }
  }

  const ChartNames& names_;
  Size size_;
  std::string out_;
  Scale x_, y_;
};

constexpr const char* kFileStyle =
    "<style>text { font: 12px system-ui, sans-serif; fill: #64748b; } "
    "path { fill: none; stroke-width: 1.5; } "
    ".grid { stroke: #64748b; opacity: .2; } .faint { opacity: .3; } .y { text-anchor: end; } "
    ".x, .axis { text-anchor: middle; } .legend { text-anchor: end; font-weight: 600; }</style>\n";

}  // namespace

std::string chart_file(const ChartNames& names, const std::vector<ChartSeries>& series) {
  return Picture(names, series, {.attributes = " xmlns=\"http://www.w3.org/2000/svg\"", .style = kFileStyle})
      .text();
}

std::string chart_html(const ChartNames& names, const std::vector<ChartSeries>& series) {
  return Picture(names, series, {.size = kWide, .attributes = " class=\"wide\"", .hover = true}).text() +
         Picture(names, series, {.size = kNarrow, .attributes = " class=\"small\"", .hover = true}).text();
}

std::string chart_style() {
  return R"(svg { width: 100%; height: auto; font-size: 12px; }
svg path { fill: none; stroke-width: 1.5; pointer-events: none; } svg text { fill: currentColor; }
svg .grid { stroke: currentColor; opacity: .15; } svg .y { text-anchor: end; }
svg .x, svg .axis { text-anchor: middle; } svg .axis { opacity: .75; }
svg .faint { opacity: .3; } svg .legend { text-anchor: end; font-weight: 600; }
svg .hit { fill: transparent; } svg .hit:hover { fill: currentColor; opacity: .1; }
svg.small { display: none; }
@media (max-width: 560px) { svg.wide { display: none; } svg.small { display: block; } }
)";
}

double axis_step(double range, double parts) {
  const double rough = range / parts;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
}

std::string short_count(double value) {
  constexpr std::pair<double, const char*> kUnits[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
  for (const auto& [unit, letter] : kUnits)
    if (std::fabs(value) >= unit) {
      std::string digits = format_fixed(value / unit, value / unit < 10 ? 2 : 1);
      while (digits.back() == '0') digits.pop_back();
      if (digits.back() == '.') digits.pop_back();
      return digits + letter;
    }
  return format_count(std::llround(value));
}

}  // namespace megalith
