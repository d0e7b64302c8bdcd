#include "libcore/train/log/report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/figures/chart.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/json/json_names.h"
#include "libcore/train/log/metrics.h"
#include "libcore/train/log/run_entries.h"

namespace megalith {
namespace {

using Points = ChartPoints;

struct LoggedRun {
  std::vector<StartEntry> starts;  // of this run and of the runs that it resumed, by iteration
  Points loss, valid_loss, rate, grad_norm, speed;
  std::vector<SampleEntry> samples;
  std::string end_reason;
};

void keep(Points& points, int64_t iteration, double value) {
  if (!std::isnan(value)) points[iteration] = value;
}

/// Handles a start entry, with which each run begins. Drops the entries after the iteration at which this
/// run starts: they come from runs that it did not resume.
void begin_run(LoggedRun& run, const StartEntry& entry) {
  const int64_t began = entry.iteration;
  for (Points* points : {&run.loss, &run.valid_loss, &run.rate, &run.grad_norm, &run.speed})
    points->erase(points->upper_bound(began), points->end());
  std::erase_if(run.samples, [&](const SampleEntry& sample) { return sample.iteration > began; });
  std::erase_if(run.starts, [&](const StartEntry& start) { return start.iteration >= began; });
  run.end_reason.clear();
  run.starts.push_back(entry);
}

void take_line(LoggedRun& run, const Json& line) {
  const std::string type = read_fields<EntryHead>(line).type;
  if (type == kStartEntry) return begin_run(run, read_fields<StartEntry>(line));
  const int64_t iteration = read_fields<EntryPlace>(line).iteration;
  if (type == kStepEntry) {
    const auto step = read_fields<StepEntry>(line);
    keep(run.loss, iteration, step.loss);
    keep(run.rate, iteration, step.lr);
    keep(run.grad_norm, iteration, step.grad_norm);
    keep(run.speed, iteration, step.tokens_per_s);
  } else if (type == kValidEntry) {
    keep(run.valid_loss, iteration, read_fields<EvaluationEntry>(line).loss);
  } else if (type == kSampleEntry) {
    run.samples.push_back(read_fields<SampleEntry>(line));
  } else if (type == kEndEntry) {
    run.end_reason = read_fields<EndEntry>(line).reason;
  }
}

LoggedRun read_run(const std::string& path) {
  LoggedRun run;
  std::string text = read_file(path);
  text.resize(text.size() - cut_line(text).size());
  const std::vector<std::string> lines = split(text, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trim(lines[i]).empty()) continue;
    const std::string where = concat(path, ":", i + 1);
    const Json line = Json::parse(lines[i], where);
    const JsonNames names(line, where);
    take_line(run, line);
  }
  if (run.starts.empty()) run.starts.emplace_back();
  return run;
}

std::string section(const std::string& title, const std::string& value,
                    const std::vector<ChartSeries>& series) {
  const bool any =
      std::any_of(series.begin(), series.end(), [](const ChartSeries& s) { return !s.points->empty(); });
  if (!any) return {};
  return "<h2>" + title + "</h2>\n" + chart_svg({title + " by iteration", value}, series);
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

int64_t log_interval(const StartEntry& start) {
  const Json* const interval = start.args.find("log_interval");
  return interval && interval->is_int() ? std::max<int64_t>(interval->as_int(), 1) : 1;
}

/// The loss in the last line of the log, whichever run printed it. If no line has been printed yet, the loss
/// of the last step.
std::string last_loss(const LoggedRun& run) {
  LoggedStretch stretch;
  for (auto start = run.starts.rbegin(); start != run.starts.rend(); ++start) {
    const int64_t interval = log_interval(*start);
    stretch.start = start->iteration;
    if (const auto mean = last_logged_mean(run.loss, interval, stretch))
      return format_fixed(*mean, 4) + (interval > 1 ? ", the mean of the last line of the log" : "");
    stretch.end = stretch.start;
  }
  return format_fixed(run.loss.rbegin()->second, 4);
}

std::string facts(const LoggedRun& run) {
  std::string out = "<h2>Run</h2>\n<table>\n";
  const auto row = [&](const std::string& name, const std::string& value) {
    out += "<tr><th>" + escape_markup(name) + "</th><td>" + escape_markup(value) + "</td></tr>\n";
  };
  const StartEntry& start = run.starts.back();
  if (!run.loss.empty()) {
    const int64_t done = run.loss.rbegin()->first;
    row("iterations",
        format_count(done) + (start.iterations > done ? " of " + format_count(start.iterations) : ""));
    if (start.iteration > 0) row("resumed after iteration", format_count(start.iteration));
    row("last training loss", last_loss(run));
  }
  if (!run.valid_loss.empty()) row("last validation loss", format_fixed(run.valid_loss.rbegin()->second, 4));
  if (!run.end_reason.empty()) row("ended", run.end_reason);
  if (start.parameters > 0) row("parameters", format_count(start.parameters));
  if (start.memory_bytes > 0) row("memory", format_bytes(static_cast<double>(start.memory_bytes)));
  return out + "</table>\n";
}

std::string options(const LoggedRun& run) {
  const Json& args = run.starts.back().args;
  if (!args.is_object()) return {};
  std::string out = "<details><summary>Options</summary>\n<table>\n";
  for (const auto& [name, value] : args.as_object())
    out +=
        "<tr><th>" + escape_markup(name) + "</th><td>" + escape_markup(scalar_text(value)) + "</td></tr>\n";
  return out + "</table>\n</details>\n";
}

std::string samples(const LoggedRun& run) {
  if (run.samples.empty()) return {};
  std::string out = "<h2>Sampled text</h2>\n";
  for (auto s = run.samples.rbegin(); s != run.samples.rend(); ++s) {
    std::string_view text = s->text;  // in files of this version the text begins with the prompt
    if (text.starts_with(s->prompt)) text.remove_prefix(s->prompt.size());
    out += concat("<h3>iteration ", s->iteration, "</h3>\n<pre><b>", escape_markup(s->prompt), "</b>",
                  escape_markup(text), "</pre>\n");
  }
  return out;
}

constexpr const char *kBlue = "#3b82f6", *kPurple = "#a855f7", *kGrey = "#64748b";

/// How to draw raw values: faintly if there is a smoothed line, which they would otherwise hide.
ChartMark raw_mark(const ChartPoints& smooth) {
  return smooth.empty() ? ChartMark::kLine : ChartMark::kFaintLine;
}

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Megalith run</title>
<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 800px; margin: 2em auto; padding: 0 1em; }
h2 { font-size: 1.1em; margin: 1.6em 0 .4em; } h3 { font-size: .95em; margin: 1em 0 .2em; }
svg { width: 100%; height: auto; font-size: 12px; } svg path { fill: none; stroke-width: 1.5; } svg text { fill: currentColor; }
svg .grid { stroke: currentColor; opacity: .15; } svg .y { text-anchor: end; } svg .x, svg .axis { text-anchor: middle; } svg .axis { opacity: .75; }
svg .faint { opacity: .3; } svg .legend { text-anchor: end; font-weight: 600; }
table { border-collapse: collapse; } th, td { text-align: left; padding: .1em 1.2em .1em 0; vertical-align: top; }
th { font-weight: 500; opacity: .75; } td, pre { overflow-wrap: anywhere; } pre { white-space: pre-wrap; border-left: 3px solid #8886; padding-left: 1em; }
</style></head><body>
<h1>Training run</h1>
)";

}  // namespace

void check_figures(const std::string& metrics_path) {
  if (!file_exists(metrics_path)) return;
  try {
    read_run(metrics_path);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    fail(ErrorKind::kData, error.what(),
         "; the report is drawn from this file, to which the run adds its figures: move it away, or give the "
         "report another name");
  }
}

void write_report(const std::string& metrics_path, const std::string& html_path) {
  const LoggedRun run = read_run(metrics_path);
  std::string html = kHead;
  const ChartPoints loss = smoothed(run.loss), norm = smoothed(run.grad_norm),
                    speed = running_medians(run.speed);
  html += section("Loss", "nats a token",
                  {{loss.empty() ? "training" : "", kBlue, &run.loss, raw_mark(loss)},
                   {"training, smoothed", kBlue, &loss},
                   {"validation", "#f97316", &run.valid_loss, ChartMark::kDottedLine}});
  html += section("Learning rate", "learning rate", {{"", "#10b981", &run.rate}});
  html += section("Gradient norm", "norm of all gradients",
                  {{"", kPurple, &run.grad_norm, raw_mark(norm)}, {"smoothed", kPurple, &norm}});
  html += section("Tokens per second", "tokens/s",
                  {{"steps", kGrey, &run.speed, ChartMark::kFaintDots}, {"running median", kGrey, &speed}});
  html += facts(run) + samples(run) + options(run) + "</body></html>\n";
  write_file(html_path, html, OutputKind::kStream);
}

}  // namespace megalith
