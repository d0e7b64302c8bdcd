#include "libcore/plan/report/plan_html.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string_view>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/figures/page.h"
#include "libcore/base/text.h"
#include "libcore/plan/launch/launch_options.h"
#include "libcore/plan/report/plan_text.h"
#include "libcore/plan/report/plan_words.h"
#include "libcore/plan/simulation/timeline.h"

namespace megalith {
namespace {

constexpr int kWidth = 960, kLeft = 70, kRow = 18;  // pixels

std::string pixels(double value) {
  return format_fixed(value, 1);
}

/// A colour and what it stands for.
std::string key_of(std::string_view color, std::string_view name) {
  return concat("<span class=key><i style=\"background:", color, "\"></i>", name, "</span> ");
}

void legend(std::ostream& out, const PlanProblem& p) {
  out << "<p>";
  for (const MemoryPart& part : memory_parts(p)) out << key_of(part.color, part.name);
  out << "</p>\n";
}

/// The beginning of a picture. A page that is narrower scrolls it.
std::string picture_begin(int height, std::string_view name) {
  return concat("<div class=picture><svg width=", kWidth, " height=", height, " role=img aria-label=\"", name,
                "\">\n");
}
constexpr const char* kPictureEnd = "</svg></div>\n";

/// The stages shown in a picture of at most `most` rows: all stages if they fit, otherwise stages at equal
/// distances, including both ends.
std::vector<int> shown_stages(int pipeline, int most) {
  const int rows = std::min(pipeline, std::max(most, 2));
  std::vector<int> out;
  for (int i = 0; i < rows; ++i)
    out.push_back(rows == pipeline ? i : static_cast<int>(int64_t{i} * (pipeline - 1) / (rows - 1)));
  return out;
}

/// The line above a picture that leaves stages out; empty if it shows all.
std::string stages_text(size_t shown, int pipeline) {
  return static_cast<int>(shown) == pipeline ? "" : concat(shown, " of ", pipeline, " stages are drawn; ");
}

void memory_bar(std::ostream& out, const MemoryEstimate& estimate, int y, double scale) {
  double x = kLeft;
  for (size_t i = 0; i < std::size(kMemoryParts); ++i) {
    const double bytes = kMemoryParts[i].value(estimate), width = scale * bytes;
    if (width > 0.05)
      out << "<rect class=m" << i << " x=" << pixels(x) << " y=" << y + 2 << " width=" << pixels(width)
          << " height=" << kRow - 4 << "><title>" << kMemoryParts[i].name << ' '
          << format_fixed(bytes / 1e9, 2) << " GB</title></rect>";
    x += width;
  }
  out << "<text x=" << pixels(x + 5) << " y=" << y + 13 << '>' << format_fixed(estimate.needed() / 1e9, 1)
      << " GB</text>\n";
}

void memory_bars(std::ostream& out, const PlanProblem& p, const Plan& plan) {
  const Candidate& c = plan.candidate;
  constexpr int kMaxBars = 48;
  const std::vector<MemoryEstimate> estimates = stage_estimates(p, c);
  const std::vector<int> stages = shown_stages(c.pipeline, kMaxBars);
  const double most = p.machine.device.memory, scale = (kWidth - kLeft - 90) / most;
  const auto height = static_cast<int>(stages.size()) * kRow;
  out << "<p>" << stages_text(stages.size(), c.pipeline) << "layers in brackets.</p>\n"
      << picture_begin(height + 24, "memory by stage");
  for (int row = 0; row * kRow < height; ++row) {
    const int y = row * kRow, stage = stages[static_cast<size_t>(row)];
    out << "<text x=" << kLeft - 6 << " y=" << y + 13 << " class=r>" << stage << " ("
        << stage_layers(p, c, stage) << ")</text>";
    memory_bar(out, estimates[static_cast<size_t>(stage)], y, scale);
  }
  const double limit = kLeft + scale * usable_memory(p);
  out << "<line x1=" << pixels(limit) << " x2=" << pixels(limit) << " y1=0 y2=" << height
      << " class=limit stroke-dasharray=\"4 3\"/><text x=" << pixels(limit) << " y=" << height + 16
      << " class=\"r limit\">" << format_fixed(usable_memory(p) / 1e9, 1) << " GB usable</text>"
      << kPictureEnd;
}

/// One path with a box for each step of one colour: a separate element for each step takes three times the
/// bytes.
std::string boxes(const std::vector<PlayedStep>& played, const std::vector<int>& stages, const Step& like,
                  double scale, int height) {
  std::ostringstream out;
  for (const PlayedStep& ran : played) {
    const auto at = std::lower_bound(stages.begin(), stages.end(), ran.stage);
    if (ran.step.kind != like.kind || ran.step.chunk != like.chunk || at == stages.end() || *at != ran.stage)
      continue;
    const std::string width = pixels(std::max(0.3, scale * (ran.end - ran.begin) - 0.3));
    out << 'M' << pixels(kLeft + scale * ran.begin) << ' ' << (at - stages.begin()) * height << 'h' << width
        << 'v' << height - 1 << "h-" << width << 'z';
  }
  return out.str();
}

/// Forward passes are blue, backward passes orange; later chunks are darker.
std::string color_of(Step::Kind kind, int chunk, int chunks) {
  const bool forward = kind == Step::kForward;
  return concat("hsl(", forward ? 215 : 30, ' ', forward ? 65 : 90, "% ",
                (forward ? 70 : 62) - 34 * chunk / std::max(chunks, 1), "%)");
}

std::string timeline_legend(int chunks) {
  std::string out = "<p>";
  for (int chunk = 0; chunk < chunks; ++chunk)
    for (const auto& [kind, name] : {std::pair{Step::kForward, "forward"}, {Step::kBackward, "backward"}})
      out += key_of(color_of(kind, chunk, chunks), chunks > 1 ? concat(name, ", chunk ", chunk + 1) : name);
  return out + "</p>\n";
}

void timeline(std::ostream& out, const PlanProblem& p, const Plan& plan) {
  const Candidate& c = plan.candidate;
  constexpr int kMaxSteps = 3000, kMaxRows = 32;
  const int steps_of_microbatch = 2 * c.chunks;
  const int64_t most = std::max<int64_t>(c.pipeline, kMaxSteps / 2 / (steps_of_microbatch * c.pipeline));
  const std::vector<PlayedStep> played = play_pipeline(p, plan, most);
  double end = 0;
  int shown = 0;
  for (const PlayedStep& at : played) {
    end = std::max(end, at.end);
    shown = std::max(shown, at.step.microbatch + 1);
  }
  const std::vector<int> stages =
      shown_stages(c.pipeline, std::min(kMaxRows, kMaxSteps / (steps_of_microbatch * shown)));
  const auto rows = static_cast<int>(stages.size());
  const int height = std::clamp(360 / rows, 6, 18);
  const double scale = (kWidth - kLeft - 10) / end;
  out << "<p>" << stages_text(stages.size(), c.pipeline) << shown << " of " << c.microbatches
      << " microbatches of a step of " << seconds_text(plan.time.total())
      << "; where nothing is drawn, a stage is idle.</p>\n"
      << timeline_legend(c.chunks) << picture_begin(rows * height + 4, "timeline");
  for (int row = 0; row < rows; ++row)
    out << "<text x=" << kLeft - 6 << " y=" << row * height + std::min(height, 13) << " class=r>"
        << stages[static_cast<size_t>(row)] << "</text>";
  for (int chunk = 0; chunk < c.chunks; ++chunk)
    for (const auto kind : {Step::kForward, Step::kBackward})
      out << "<path fill=\"" << color_of(kind, chunk, c.chunks) << "\" d=\""
          << boxes(played, stages, {.kind = kind, .chunk = chunk, .microbatch = 0}, scale, height)
          << "\"/>\n";
  out << kPictureEnd;
}

/// The plot of the Pareto front: seconds of a sample to the right, memory upwards.
class FrontPlot {
 public:
  explicit FrontPlot(const Report& r) : report_(r) {
    constexpr double kAbove = 1.15;  // room above the highest point
    for (const Plan& plan : r.front) {
      fast_ = std::min(fast_, seconds(plan));
      slow_ = std::max(slow_, seconds(plan));
      most_ = std::max(most_, kAbove * memory(plan));
    }
    slow_ = std::max(slow_, 1.02 * fast_);
  }
  void draw(std::ostream& out) const {
    out << picture_begin(kHeight, "Pareto front");
    axes(out);
    out << "<path d=\"";
    for (size_t i = 0; i < report_.front.size(); ++i) {
      const Plan& plan = report_.front[i];
      out << (i ? 'L' : 'M') << pixels(x(seconds(plan))) << ' ' << pixels(y(memory(plan)));
    }
    out << "\" fill=none stroke=\"#4269d0\"/>\n";
    for (size_t i = 0; i < report_.front.size(); ++i) point(out, i);
    out << kPictureEnd;
    options(out);
  }

 private:
  static constexpr int kHeight = 280, kBottom = 46, kTop = 18, kRight = 40;

  static double seconds(const Plan& plan) {
    return plan.time.total() / static_cast<double>(plan.candidate.global_batch);
  }
  static double memory(const Plan& plan) { return plan.memory.estimate.needed(); }
  double x(double value) const {
    return kLeft + (kWidth - kLeft - kRight) * (value - fast_) / (slow_ - fast_);
  }
  double y(double bytes) const { return kTop + (kHeight - kBottom - kTop) * (1 - bytes / most_); }

  void axes(std::ostream& out) const {
    constexpr double kMs = 1e3, kGb = 1e9;
    const double bytes = axis_step(most_ / kGb, 5), time = axis_step((slow_ - fast_) * kMs, 6);
    for (double at = 0; at * kGb <= most_; at += bytes)
      out << "<line class=grid x1=" << kLeft << " x2=" << kWidth - kRight << " y1=" << pixels(y(at * kGb))
          << " y2=\"" << pixels(y(at * kGb)) << "\"/><text class=r x=" << kLeft - 6
          << " y=" << pixels(y(at * kGb) + 4) << '>' << format_double(at) << "</text>\n";
    for (double at = std::ceil(fast_ * kMs / time) * time; at <= slow_ * kMs; at += time)
      out << "<text class=c x=" << pixels(x(at / kMs)) << " y=" << kHeight - kBottom + 16 << '>'
          << format_fixed(at, std::max(0, -static_cast<int>(std::floor(std::log10(time))))) << "</text>\n";
    out << "<text class=c x=" << (kLeft + kWidth - kRight) / 2 << " y=" << kHeight - 10
        << ">milliseconds a sample</text><text x=4 y=11>GB</text>\n";
  }
  void point(std::ostream& out, size_t i) const {
    const Plan& plan = report_.front[i];
    const double at = x(seconds(plan)), height = y(memory(plan));
    out << "<circle cx=" << pixels(at) << " cy=" << pixels(height) << " r=4 fill=\"#4269d0\"><title>"
        << escape_markup(launch_options(report_.problem, plan.candidate))
        << "</title></circle><text x=" << pixels(at + 6) << " y=" << pixels(height - 6) << '>' << i + 1
        << "</text>\n";
  }
  /// What the numbers in the plot stand for.
  void options(std::ostream& out) const {
    out << "<div class=picture><table><tr><th><th>ms a sample<th>GB<th>options</tr>\n";
    for (size_t i = 0; i < report_.front.size(); ++i) {
      const Plan& plan = report_.front[i];
      out << "<tr><td>" << i + 1 << "<td>" << format_fixed(seconds(plan) * 1e3, 3) << "<td>"
          << format_fixed(memory(plan) / 1e9, 1) << "<td><code>"
          << escape_markup(launch_options(report_.problem, plan.candidate)) << "</code></tr>\n";
    }
    out << "</table></div>\n";
  }

  const Report& report_;
  double fast_ = 1e300, slow_ = 0, most_ = 0;
};

constexpr const char* kStyle =
    "body{max-width:1000px}code{overflow-wrap:anywhere}td{overflow-wrap:normal}.picture{overflow-x:auto}"
    "svg{display:block}text{font-size:11px;fill:currentColor}text.r{text-anchor:end}"
    "text.c{text-anchor:middle}.grid{stroke:currentColor;opacity:.2}line.limit{stroke:#e5484d}"
    "text.limit{fill:#e5484d}.key{margin-right:1em;white-space:nowrap}"
    ".key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}"
    "pre.table{white-space:pre;overflow-x:auto;overflow-wrap:normal;font-size:12px}";

/// The style sheet's colours of the bars: class mN is for part N of kMemoryParts.
std::string part_colors() {
  std::string out;
  for (size_t i = 0; i < std::size(kMemoryParts); ++i)
    out += concat(".m", i, "{fill:", kMemoryParts[i].color, '}');
  return out;
}

}  // namespace

std::string plan_html(const Report& r) {
  const PlanProblem& p = r.problem;
  std::ostringstream out;
  out << page_begin(concat(parameters_text(p.model), " on ", p.machine.world, " x ", p.machine.device.name),
                    kStyle + part_colors());
  if (!r.result.plans.empty()) {
    const Plan& best = r.result.plans.front();
    out << "<p><code>" << escape_markup(launch_options(p, best.candidate))
        << "</code></p>\n<h2>Memory of plan 1 by stage</h2>\n";
    legend(out, r.problem);
    memory_bars(out, p, best);
    out << "<h2>The pipeline of plan 1</h2>\n";
    timeline(out, p, best);
    out << "<h2>Time against memory</h2>\n";
    if (!r.front.empty()) FrontPlot(r).draw(out);
  }
  out << "<h2>All of it</h2>\n<pre class=\"table\">" << escape_markup(plan_text(r, PlanDetail::kAll))
      << "</pre>\n"
      << page_end();
  return out.str();
}

}  // namespace megalith
