#include "libcore/train/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/json.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

using Points = std::map<int64_t, double>;  // by iteration; a repeated iteration overwrites

struct Sample {
  int64_t iteration;
  std::string prompt, text;
};

struct Run {
  Json start;
  Points loss, valid_loss, rate, grad_norm, speed;
  std::vector<Sample> samples;
  std::string end_reason;
};

void keep(Points& points, const Json& line, int64_t iteration, const char* key) {
  const Json* value = line.find(key);
  if (value && value->is_number()) points[iteration] = value->as_double();
}

void take_line(Run& run, const Json& line) {
  const std::string& type = line["type"].as_string();
  if (type == "start") {
    run.start = line;
    return;
  }
  const int64_t iteration = line["iteration"].as_int();
  if (type == "train") {
    keep(run.loss, line, iteration, "loss");
    keep(run.rate, line, iteration, "lr");
    keep(run.grad_norm, line, iteration, "grad_norm");
    keep(run.speed, line, iteration, "tokens_per_s");
  } else if (type == "valid") {
    keep(run.valid_loss, line, iteration, "loss");
  } else if (type == "sample") {
    run.samples.push_back({iteration, line["prompt"].as_string(), line["text"].as_string()});
  } else if (type == "end") {
    run.end_reason = line["reason"].as_string();
  }
}

Run read_run(const std::string& path) {
  Run run;
  const std::vector<std::string> lines = split(read_file(path), '\n');
  for (size_t i = 0; i < lines.size(); ++i)
    if (!trim(lines[i]).empty()) take_line(run, Json::parse(lines[i], path + ":" + std::to_string(i + 1)));
  return run;
}

std::string escape(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

struct Series {
  const char* name;
  const char* color;
  const Points* points;
  bool dots;  // few measurements: each is marked
};

struct Scale {
  double low = 0, high = 1;
  double step() const {  // 1, 2 or 5 times a power of ten, four to nine steps
    const double rough = (high - low) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  }
};

Scale scale_of(const std::vector<Series>& series, bool iterations) {
  Scale scale{INFINITY, -INFINITY};
  for (const Series& s : series)
    for (const auto& [iteration, value] : *s.points) {
      const double v = iterations ? static_cast<double>(iteration) : value;
      scale.low = std::min(scale.low, v);
      scale.high = std::max(scale.high, v);
    }
  if (scale.low > scale.high) return {0, 1};
  if (scale.low == scale.high) scale.high = scale.low + std::max(1.0, std::fabs(scale.low));
  return scale;
}

/// Width, height and margins of a picture, in its own units.
constexpr double kWidth = 760, kHeight = 300, kLeft = 64, kRight = 16, kTop = 14, kBottom = 34;
constexpr size_t kMostPoints = 1500;  // a longer curve is thinned: no screen shows more

class Picture {
 public:
  explicit Picture(const std::vector<Series>& series)
      : x_(scale_of(series, true)), y_(scale_of(series, false)) {
    out_ = concat("<svg viewBox=\"0 0 ", kWidth, " ", kHeight, "\" role=\"img\">\n");
    grid();
    for (const Series& s : series) curve(s);
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

  void curve(const Series& s) {
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

  void legend(const std::vector<Series>& series) {
    double x = kWidth - kRight;
    for (auto s = series.rbegin(); s != series.rend(); ++s) {
      out_ += concat("<text class=\"legend\" x=\"", x, "\" y=\"", kTop + 10, "\" style=\"fill:", s->color,
                     "\">", s->name, "</text>\n");
      x -= 12 + 8.0 * static_cast<double>(std::string_view(s->name).size());
    }
  }

  std::string out_;
  Scale x_, y_;
};

std::string section(const std::string& title, const std::vector<Series>& series) {
  const bool any =
      std::any_of(series.begin(), series.end(), [](const Series& s) { return !s.points->empty(); });
  if (!any) return {};
  return "<h2>" + title + "</h2>\n" + Picture(series).text();
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

std::string facts(const Run& run) {
  std::string out = "<h2>Run</h2>\n<table>\n";
  const auto row = [&](const std::string& name, const std::string& value) {
    out += "<tr><th>" + escape(name) + "</th><td>" + escape(value) + "</td></tr>\n";
  };
  if (!run.loss.empty()) {
    row("iterations", format_count(run.loss.rbegin()->first));
    row("last training loss", format_fixed(run.loss.rbegin()->second, 4));
  }
  if (!run.valid_loss.empty()) row("last validation loss", format_fixed(run.valid_loss.rbegin()->second, 4));
  if (!run.end_reason.empty()) row("ended", run.end_reason);
  if (run.start.is_object())
    for (const auto& [name, value] : run.start.as_object())
      if (name != "type" && name != "time" && !value.is_object() && !value.is_array())
        row(name, scalar_text(value));
  return out + "</table>\n";
}

std::string options(const Run& run) {
  const Json* args = run.start.find("args");
  if (!args || !args->is_object()) return {};
  std::string out = "<details><summary>Options</summary>\n<table>\n";
  for (const auto& [name, value] : args->as_object())
    out += "<tr><th>" + escape(name) + "</th><td>" + escape(scalar_text(value)) + "</td></tr>\n";
  return out + "</table>\n</details>\n";
}

std::string samples(const Run& run) {
  if (run.samples.empty()) return {};
  std::string out = "<h2>Sampled text</h2>\n";
  for (auto s = run.samples.rbegin(); s != run.samples.rend(); ++s)
    out += concat("<h3>iteration ", s->iteration, "</h3>\n<pre><b>", escape(s->prompt), "</b>",
                  escape(s->text), "</pre>\n");
  return out;
}

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Megalith run</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 800px; margin: 2em auto; padding: 0 1em; }
h2 { font-size: 1.1em; margin: 1.6em 0 .4em; } h3 { font-size: .95em; margin: 1em 0 .2em; }
svg { width: 100%; font-size: 12px; } svg path { fill: none; stroke-width: 1.5; } svg text { fill: currentColor; }
svg .grid { stroke: currentColor; opacity: .15; } svg .y { text-anchor: end; } svg .x { text-anchor: middle; }
svg .legend { text-anchor: end; font-weight: 600; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .1em 1.2em .1em 0; vertical-align: top; }
th { font-weight: 500; opacity: .75; } pre { white-space: pre-wrap; border-left: 3px solid #8886; padding-left: 1em; }
</style></head><body>
<h1>Training run</h1>
)";

}  // namespace

void write_report(const std::string& metrics_path, const std::string& html_path) {
  const Run run = read_run(metrics_path);
  std::string html = kHead;
  html += section("Loss (nats a token)", {{"training", "#3b82f6", &run.loss, false},
                                          {"validation", "#f97316", &run.valid_loss, true}});
  html += section("Learning rate", {{"learning rate", "#10b981", &run.rate, false}});
  html += section("Gradient norm", {{"gradient norm", "#a855f7", &run.grad_norm, false}});
  html += section("Tokens per second", {{"tokens/s", "#64748b", &run.speed, false}});
  html += facts(run) + samples(run) + options(run) + "</body></html>\n";
  write_file(html_path, html);
}

}  // namespace megalith
