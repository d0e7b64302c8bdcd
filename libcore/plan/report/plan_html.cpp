#include "libcore/plan/report/plan_html.h"

#include <algorithm>
#include <sstream>

#include "libcore/base/error.h"
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

void legend(std::ostream& out, const PlanProblem& p) {
  out << "<p>";
  for (const MemoryPart& part : memory_parts(p))
    out << "<span class=key><i style=\"background:" << part.color << "\"></i>" << part.name << "</span> ";
  out << "</p>\n";
}

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
  out << "<p>" << stages_text(stages.size(), c.pipeline) << "layers in brackets.</p>\n<svg width=" << kWidth
      << " height=" << height + 24 << " role=img aria-label=\"memory by stage\">\n";
  for (int row = 0; row * kRow < height; ++row) {
    const int y = row * kRow, stage = stages[static_cast<size_t>(row)];
    out << "<text x=" << kLeft - 6 << " y=" << y + 13 << " class=r>" << stage << " ("
        << stage_layers(p, c, stage) << ")</text>";
    memory_bar(out, estimates[static_cast<size_t>(stage)], y, scale);
  }
  const double limit = kLeft + scale * usable_memory(p);
  out << "<line x1=" << pixels(limit) << " x2=" << pixels(limit) << " y1=0 y2=" << height
      << " stroke=\"#c00\" stroke-dasharray=\"4 3\"/><text x=" << pixels(limit) << " y=" << height + 16
      << " class=r fill=\"#c00\">" << format_fixed(usable_memory(p) / 1e9, 1) << " GB usable</text></svg>\n";
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
      << " microbatches, " << format_fixed(end, 3)
      << " s; forward blue, backward green, darker for later chunks, idle white.</p>\n<svg width=" << kWidth
      << " height=" << rows * height + 4 << " role=img aria-label=timeline>\n";
  for (int row = 0; row < rows; ++row)
    out << "<text x=" << kLeft - 6 << " y=" << row * height + std::min(height, 13) << " class=r>"
        << stages[static_cast<size_t>(row)] << "</text>";
  for (int chunk = 0; chunk < c.chunks; ++chunk)
    for (const auto kind : {Step::kForward, Step::kBackward})
      out << "<path fill=\"hsl(" << (kind == Step::kForward ? 215 : 145) << " 55% "
          << 72 - 30 * chunk / std::max(c.chunks, 1) << "%)\" d=\""
          << boxes(played, stages, {.kind = kind, .chunk = chunk, .microbatch = 0}, scale, height)
          << "\"/>\n";
  out << "</svg>\n";
}

void front_plot(std::ostream& out, const Report& r) {
  if (r.front.empty()) return;
  constexpr int kHeight = 260, kBottom = 34;
  double fast = 1e300, slow = 0, most = usable_memory(r.problem);
  const auto seconds = [](const Plan& plan) {
    return plan.time.total() / static_cast<double>(plan.candidate.global_batch);
  };
  for (const Plan& plan : r.front) {
    fast = std::min(fast, seconds(plan));
    slow = std::max(slow, seconds(plan));
  }
  const double span = std::max(slow - fast, 0.02 * fast);
  const auto x = [&](const Plan& plan) {
    return kLeft + (kWidth - kLeft - 40) * (seconds(plan) - fast) / span;
  };
  const auto y = [&](const Plan& plan) {
    return 10 + (kHeight - kBottom - 20) * (1 - plan.memory.estimate.needed() / most);
  };
  out << "<svg width=" << kWidth << " height=" << kHeight
      << " role=img aria-label=\"Pareto front\">\n<path d=\"";
  for (size_t i = 0; i < r.front.size(); ++i)
    out << (i ? 'L' : 'M') << pixels(x(r.front[i])) << ' ' << pixels(y(r.front[i]));
  out << "\" fill=none stroke=\"#4269d0\"/>\n";
  for (const Plan& plan : r.front)
    out << "<circle cx=" << pixels(x(plan)) << " cy=" << pixels(y(plan)) << " r=4 fill=\"#4269d0\"><title>"
        << escape_markup(launch_options(r.problem, plan.candidate)) << "</title></circle>\n";
  out << "<line x1=" << kLeft << " x2=" << kWidth - 20 << " y1=" << kHeight - kBottom
      << " y2=" << kHeight - kBottom << " stroke=\"#888\"/><line x1=" << kLeft << " x2=" << kLeft
      << " y1=5 y2=" << kHeight - kBottom << " stroke=\"#888\"/>"
      << "<text x=" << kLeft << " y=" << kHeight - 12 << ">" << format_fixed(fast * 1e3, 2)
      << " ms a sample</text><text x=" << kWidth - 20 << " y=" << kHeight - 12 << " class=r>"
      << format_fixed(slow * 1e3, 2) << " ms a sample</text><text x=" << kLeft - 6 << " y=16 class=r>"
      << format_fixed(most / 1e9, 0) << " GB</text><text x=" << kLeft - 6 << " y=" << kHeight - kBottom
      << " class=r>0</text></svg>\n";
}

constexpr const char* kStyle =
    "body{font:14px/1.45 system-ui,sans-serif;max-width:1000px;margin:2em auto;padding:0 1em;color:#1b1e23}"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:1.6em}pre{background:#f5f6f8;padding:.8em;overflow-x:"
    "auto;font-size:12px}"
    "svg{max-width:100%}text{font-size:11px;fill:#333}text.r{text-anchor:end}.key{margin-right:1em;white-"
    "space:nowrap}"
    ".key i{display:inline-block;width:.8em;height:.8em;margin-right:.3em}";

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
  out << "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport "
         "content=\"width=device-width\">"
      << "<title>Plan for " << p.machine.world << " x " << escape_markup(p.machine.device.name)
      << "</title><style>" << kStyle << part_colors() << "</style></head><body>\n<h1>"
      << format_fixed(total_parameters(p.model) / 1e9, 2) << " billion parameters" << active_text(p.model)
      << " on " << p.machine.world << " x " << escape_markup(p.machine.device.name) << "</h1>\n";
  if (!r.result.plans.empty()) {
    const Plan& best = r.result.plans.front();
    out << "<p><code>" << escape_markup(launch_options(p, best.candidate))
        << "</code></p>\n<h2>Memory of plan 1 by stage</h2>\n";
    legend(out, r.problem);
    memory_bars(out, p, best);
    out << "<h2>The pipeline of plan 1</h2>\n";
    timeline(out, p, best);
    out << "<h2>Time against memory</h2>\n";
    front_plot(out, r);
  }
  out << "<h2>All of it</h2>\n<pre>" << escape_markup(plan_text(r)) << "</pre>\n</body></html>\n";
  return out.str();
}

}  // namespace megalith
