#include "libcore/train/log/report.h"

#include <algorithm>
#include <string_view>

#include "libcore/base/error.h"
#include "libcore/base/figures/page.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"

namespace megalith {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr const char *kBlue = "#3b82f6", *kOrange = "#f97316", *kGreen = "#10b981", *kPurple = "#a855f7",
                     *kGrey = "#7c8ba1", *kRed = "#e11d48";
constexpr const char* kColors[] = {kBlue, kOrange, kGreen, kPurple, kRed, kGrey};

/// The texts of a chart by iteration, with the tokens that had been read below.
ChartNames by_iteration(const RunHistory& run, const std::string& title, const std::string& value) {
  return {.title = title + " by iteration", .value = value, .second = "tokens", .below = &run.tokens};
}

/// How to draw raw values: faintly if there is a smoothed line, which they would otherwise hide.
ChartMark raw_mark(const ChartPoints& smooth) {
  return smooth.empty() ? ChartMark::kLine : ChartMark::kFaintLine;
}

std::string loss_chart(const RunHistory& run) {
  const ChartPoints smooth = smoothed(run.loss);
  return chart_section("Loss", by_iteration(run, "Loss", "nats a token"),
                       {{smooth.empty() ? "training" : "", kBlue, &run.loss, raw_mark(smooth), "training"},
                        {"training, smoothed", kBlue, &smooth},
                        {"validation", kOrange, &run.valid_loss, ChartMark::kDottedLine},
                        {"test", kGreen, &run.test_loss, ChartMark::kDottedLine}});
}

std::string other_charts(const RunHistory& run) {
  const ChartPoints norm = smoothed(run.grad_norm), speed = running_medians(run.speed);
  return chart_section("Learning rate", by_iteration(run, "Learning rate", "learning rate"),
                       {{"", kGreen, &run.rate}}) +
         chart_section(
             "Gradient norm", by_iteration(run, "Gradient norm", "norm of all gradients"),
             {{"", kPurple, &run.grad_norm, raw_mark(norm), "norm"}, {"smoothed", kPurple, &norm}}) +
         chart_section(
             "Tokens per second", by_iteration(run, "Tokens per second", "tokens/s"),
             {{"steps", kGrey, &run.speed, ChartMark::kFaintDots}, {"running median", kGrey, &speed}});
}

/// A chart of the tasks' figures whose names end in one of `names`.
std::string tasks_chart(const RunHistory& run, const ChartNames& texts, const std::string& heading,
                        const std::vector<std::string_view>& names) {
  std::vector<ChartSeries> series;
  for (const auto& [name, points] : run.tasks) {
    const std::string_view figure = std::string_view(name).substr(name.rfind(' ') + 1);
    if (std::ranges::find(names, figure) != names.end())
      series.push_back({name, kColors[series.size() % std::size(kColors)], &points, ChartMark::kDottedLine});
  }
  return chart_section(heading, texts, series);
}

std::string task_charts(const RunHistory& run) {
  return tasks_chart(run, by_iteration(run, "Right answers", "share of items"), "Tasks: right answers",
                     {"acc", "acc_norm"}) +
         tasks_chart(run, by_iteration(run, "Bits per byte", "bits per byte"), "Tasks: bits per byte",
                     {"bits_per_byte"});
}

void add_progress(Rows& rows, const RunHistory& run) {
  const StartEntry& start = run.start();
  if (!run.loss.empty()) {
    rows.push_back({"iterations", progress_text(run)});
    if (start.iteration > 0) rows.push_back({"resumed after iteration", format_count(start.iteration)});
    if (!run.tokens.empty())
      rows.push_back({"tokens", format_count(static_cast<int64_t>(run.tokens.rbegin()->second))});
    const LastLoss loss = last_loss(run);
    rows.push_back({"last training loss", format_fixed(loss.value, 4) +
                                              (loss.mean ? ", the mean of the last line of the log" : "")});
  }
  if (!run.valid_loss.empty()) rows.push_back({"last validation loss", last_value_text(run.valid_loss)});
  if (!run.test_loss.empty()) rows.push_back({"test loss", last_value_text(run.test_loss)});
  for (const auto& [name, points] : run.tasks)
    if (!points.empty()) rows.push_back({name, last_value_text(points)});
}

std::string facts(const RunHistory& run, size_t earlier) {
  const StartEntry& start = run.start();
  Rows rows;
  add_progress(rows, run);
  if (!run.end_reason.empty()) rows.push_back({"ended", run.end_reason});
  if (const std::string date = date_text(run.starts.front().time); !date.empty())
    rows.push_back({"began", date});
  if (const double seconds = seconds_of(run); seconds > 0)
    rows.push_back({"duration", format_duration(seconds)});
  if (start.parameters > 0) rows.push_back({"parameters", format_count(start.parameters)});
  if (start.memory_bytes > 0)
    rows.push_back({"memory", format_bytes(static_cast<double>(start.memory_bytes))});
  if (const std::string data = data_of(run); !data.empty()) rows.push_back({"data", data});
  if (!start.command.empty()) rows.push_back({"command", start.command});
  if (earlier > 0)
    rows.push_back({"earlier runs in its file", format_count(static_cast<int64_t>(earlier)) +
                                                    ", which megalith report shows beside this one"});
  return "<h2>Run</h2>\n" + html_table(rows);
}

std::string options(const RunHistory& run) {
  const Json& args = run.start().args;
  if (!args.is_object()) return {};
  Rows rows;
  for (const auto& [name, value] : args.as_object()) rows.push_back({name, run.option(name)});
  return folded("Options", html_table(rows));
}

std::string samples(const RunHistory& run) {
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

}  // namespace

std::string run_page(const RunHistory& run, size_t earlier) {
  return page_begin(run.name.empty() ? "Training run" : "Training run " + run.name, chart_style()) +
         loss_chart(run) + task_charts(run) + other_charts(run) + facts(run, earlier) + samples(run) +
         options(run) + page_end();
}

void write_report(const std::string& metrics_path, const std::string& html_path) {
  std::vector<RunHistory> runs = read_runs(metrics_path);
  RunHistory& run = runs.back();
  run.name = name_of_run(run, html_path);
  write_file(html_path, run_page(run, runs.size() - 1), OutputKind::kStream);
}

size_t check_figures(const std::string& metrics_path) {
  if (!file_exists(metrics_path)) return 0;
  try {
    const std::vector<RunHistory> runs = read_runs(metrics_path);
    return runs.front().loss.empty() ? 0 : runs.size();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kData) throw;
    fail(ErrorKind::kData, error.what(),
         "; the report is drawn from this file, to which the run adds its figures: move it away, or give the "
         "report another name");
  }
}

}  // namespace megalith
