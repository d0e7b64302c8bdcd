#include "libcore/train/log/comparison.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/figures/page.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/figures/text_table.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

using Row = std::vector<std::string>;

constexpr const char* kColors[] = {"#3b82f6", "#f97316", "#10b981", "#a855f7",
                                   "#e11d48", "#0891b2", "#ca8a04", "#7c8ba1"};

/// "report" for "runs/report.html.jsonl".
std::string short_name(const std::string& path) {
  std::string name = std::filesystem::path(path).filename().string();
  for (const std::string_view ending : {".jsonl", ".html"})
    if (name.ends_with(ending) && name.size() > ending.size()) name.resize(name.size() - ending.size());
  return name;
}

/// Losses by `unit` times what `places` holds for their iterations, such as tokens or milliseconds.
ChartPoints moved(const ChartPoints& loss, const ChartPoints& places, double unit) {
  ChartPoints out;
  for (const auto& [iteration, value] : loss)
    if (const auto place = places.find(iteration); place != places.end())
      out[std::llround(place->second * unit)] = value;
  return out;
}

/// The losses of all runs in one chart; their training losses are smoothed.
struct LossCurves {
  std::vector<ChartPoints> train, valid;
};

std::string loss_section(const std::vector<RunHistory>& runs, const std::string& heading,
                         const ChartNames& names, const LossCurves& curves) {
  std::vector<ChartSeries> series;
  for (size_t i = 0; i < runs.size(); ++i) {
    const char* const color = kColors[i % std::size(kColors)];
    const std::string& name = runs[i].name;
    series.push_back({name, color, &curves.train[i], ChartMark::kLine, name + ", training"});
    series.push_back({"", color, &curves.valid[i], ChartMark::kDottedLine, name + ", validation"});
  }
  return chart_section(heading, names, series);
}

ChartPoints shown(const ChartPoints& loss) {
  ChartPoints smooth = smoothed(loss);
  return smooth.empty() ? loss : smooth;
}

std::string by_iterations(const std::vector<RunHistory>& runs) {
  LossCurves curves;
  for (const RunHistory& run : runs) {
    curves.train.push_back(shown(run.loss));
    curves.valid.push_back(run.valid_loss);
  }
  return loss_section(runs, "Loss over iterations", {.title = "Loss by iteration", .value = "nats a token"},
                      curves);
}

LossCurves curves_by(const std::vector<RunHistory>& runs, ChartPoints RunHistory::*places, double unit) {
  LossCurves curves;
  for (const RunHistory& run : runs) {
    curves.train.push_back(moved(shown(run.loss), run.*places, unit));
    curves.valid.push_back(moved(run.valid_loss, run.*places, unit));
  }
  return curves;
}

std::string by_tokens(const std::vector<RunHistory>& runs) {
  return loss_section(runs, "Loss over tokens",
                      {.title = "Loss by tokens", .value = "nats a token", .key = "tokens"},
                      curves_by(runs, &RunHistory::tokens, 1));
}

std::string by_time(const std::vector<RunHistory>& runs) {
  constexpr double kMs = 1000;
  double longest = 0;
  for (const RunHistory& run : runs)
    longest = std::max(longest, run.seconds.empty() ? 0 : run.seconds.rbegin()->second);
  const std::pair<double, const char*> unit = longest >= 2 * 3600 ? std::pair{3600.0, "hours"}
                                              : longest >= 120    ? std::pair{60.0, "minutes"}
                                                                  : std::pair{1.0, "seconds"};
  return loss_section(
      runs, "Loss over time",
      {.title = "Loss by time", .value = "nats a token", .key = unit.second, .unit = unit.first * kMs},
      curves_by(runs, &RunHistory::seconds, kMs));
}

std::string speed_of(const RunHistory& run) {
  if (run.speed.empty()) return {};
  std::vector<double> values;
  for (const auto& [iteration, value] : run.speed) values.push_back(value);
  return format_count(std::llround(quantile(std::move(values), 0.5)));
}

const Row& figure_names() {
  static const Row kNames = {"run",      "began", "state",      "iterations", "tokens",    "duration",
                             "tokens/s", "loss",  "validation", "test",       "parameters"};
  return kNames;
}

Row figures_of(const RunHistory& run) {
  const StartEntry& start = run.start();
  return {run.name,
          date_text(run.starts.front().time),
          run.end_reason.empty() ? "no end yet, " + date_text(run.last_time) : run.end_reason,
          progress_text(run),
          run.tokens.empty() ? "" : short_count(run.tokens.rbegin()->second),
          format_duration(seconds_of(run)),
          speed_of(run),
          run.loss.empty() ? "" : format_fixed(last_loss(run).value, 4),
          last_value_text(run.valid_loss),
          last_value_text(run.test_loss),
          start.parameters > 0 ? short_count(static_cast<double>(start.parameters)) : ""};
}

Row names_of(const std::vector<RunHistory>& runs, const std::string& first) {
  Row names = {first};
  for (const RunHistory& run : runs) names.push_back(run.name);
  return names;
}

/// The figures of --eval-tasks: a row for each, a column for each run.
std::vector<Row> task_rows(const std::vector<RunHistory>& runs) {
  std::map<std::string, Row> rows;
  for (size_t i = 0; i < runs.size(); ++i)
    for (const auto& [name, points] : runs[i].tasks) {
      Row& row = rows[name];
      row.resize(runs.size() + 1);
      row[0] = name;
      row[i + 1] = last_value_text(points);
    }
  std::vector<Row> out;
  for (auto& [name, row] : rows) out.push_back(std::move(row));
  return out;
}

/// The options that differ, in the same form.
std::vector<Row> option_rows(const std::vector<RunHistory>& runs) {
  std::vector<Row> out;
  for (const OptionRow& option : differing_options(runs)) {
    Row row = {option.name};
    row.insert(row.end(), option.values.begin(), option.values.end());
    out.push_back(std::move(row));
  }
  return out;
}

/// The figures with a column for each run: pages are narrow.
std::vector<Row> figure_rows(const std::vector<RunHistory>& runs) {
  std::vector<Row> rows;
  for (size_t i = 1; i < figure_names().size(); ++i) rows.push_back({figure_names()[i]});
  for (const RunHistory& run : runs) {
    const Row figures = figures_of(run);
    for (size_t i = 1; i < figures.size(); ++i) rows[i - 1].push_back(figures[i]);
  }
  return rows;
}

std::string commands(const std::vector<RunHistory>& runs) {
  std::vector<Row> rows;
  for (const RunHistory& run : runs)
    if (!run.start().command.empty()) rows.push_back({run.name, run.start().command});
  return rows.empty() ? std::string() : folded("Commands", html_table(rows));
}

std::string text_section(const Row& headings, const std::vector<Row>& rows, size_t columns) {
  if (rows.empty()) return {};
  TextTable table{.rows = {headings}, .texts = {0, 1, 2}};
  for (const Row& row : rows) {
    table.rows.emplace_back();
    for (const std::string& cell : row) table.rows.back().push_back(printable(cell));
  }
  return table_text(table, columns) + "\n";
}

}  // namespace

std::vector<RunHistory> read_named_runs(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) names.push_back(short_name(path));
  std::vector<RunHistory> out;
  for (size_t i = 0; i < paths.size(); ++i) {
    const bool alone = std::ranges::count(names, names[i]) == 1;
    std::vector<RunHistory> runs = read_runs(paths[i]);
    for (size_t number = 0; number < runs.size(); ++number) {
      runs[number].name = alone ? names[i] : paths[i];
      if (runs.size() > 1) runs[number].name += concat(", run ", number + 1);
      out.push_back(std::move(runs[number]));
    }
  }
  return out;
}

std::string comparison_page(const std::vector<RunHistory>& runs) {
  std::string out = page_begin(concat(runs.size(), " training runs"), chart_style()) +
                    "<p>Lines: training losses, smoothed. Dots: validation losses.</p>\n" +
                    by_iterations(runs) + by_tokens(runs) + by_time(runs) + "<h2>Runs</h2>\n" +
                    html_table(names_of(runs, "run"), figure_rows(runs));
  if (const std::vector<Row> tasks = task_rows(runs); !tasks.empty())
    out += "<h2>Tasks</h2>\n" + html_table(names_of(runs, "figure"), tasks);
  const std::vector<Row> options = option_rows(runs);
  out += "<h2>Options that differ</h2>\n" +
         (options.empty() ? std::string("<p>None.</p>\n") : html_table(names_of(runs, "option"), options));
  return out + commands(runs) + page_end();
}

std::string comparison_text(const std::vector<RunHistory>& runs, size_t columns) {
  std::vector<Row> figures;
  for (const RunHistory& run : runs) figures.push_back(figures_of(run));
  return text_section(figure_names(), figures, columns) +
         text_section(names_of(runs, "figure"), task_rows(runs), columns) +
         text_section(names_of(runs, "option that differs"), option_rows(runs), columns);
}

}  // namespace megalith
