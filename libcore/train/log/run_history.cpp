#include "libcore/train/log/run_history.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "libcore/json/json_names.h"
#include "libcore/train/log/metrics.h"

namespace megalith {
namespace {

void keep(ChartPoints& points, int64_t iteration, double value) {
  if (!std::isnan(value)) points[iteration] = value;
}

/// The mean of several validation sets counts as the validation loss.
void take_validation(RunHistory& run, const EvaluationEntry& entry) {
  if (!entry.set) return keep(run.valid_loss, entry.iteration, entry.loss);
  std::map<std::string, double>& sets = run.valid_sets[entry.iteration];
  sets[*entry.set] = entry.loss;
  double sum = 0;
  for (const auto& [name, loss] : sets) sum += loss;
  keep(run.valid_loss, entry.iteration, sum / static_cast<double>(sets.size()));
}

/// Drops what a run did after the iteration at which it is resumed.
void forget_after(RunHistory& run, int64_t iteration) {
  for (ChartPoints* points : {&run.loss, &run.valid_loss, &run.test_loss, &run.rate, &run.grad_norm,
                              &run.speed, &run.tokens, &run.seconds})
    points->erase(points->upper_bound(iteration), points->end());
  run.valid_sets.erase(run.valid_sets.upper_bound(iteration), run.valid_sets.end());
  for (auto& [name, points] : run.tasks) points.erase(points.upper_bound(iteration), points.end());
  std::erase_if(run.samples, [&](const SampleEntry& sample) { return sample.iteration > iteration; });
  std::erase_if(run.saves, [&](const SaveEntry& save) { return save.iteration > iteration; });
  std::erase_if(run.starts, [&](const RunStart& start) { return start.entry.iteration >= iteration; });
  run.end_reason.clear();
}

void take_step(RunHistory& run, const StepEntry& step) {
  keep(run.loss, step.iteration, step.loss);
  keep(run.rate, step.iteration, step.lr);
  keep(run.grad_norm, step.iteration, step.grad_norm);
  keep(run.speed, step.iteration, step.tokens_per_s);
  if (step.tokens > 0) run.tokens[step.iteration] = static_cast<double>(step.tokens);
  run.memory_bytes = std::max(run.memory_bytes, step.memory_bytes);
}

void take_tasks(RunHistory& run, const TasksEntry& entry) {
  if (!entry.results.is_object()) return;
  for (const auto& [task, figures] : entry.results.as_object()) {
    if (!figures.is_object()) continue;
    for (const auto& [name, value] : figures.as_object())
      if (value.is_number() && !name.ends_with("_stderr"))
        run.tasks[concat(task, ' ', name)][entry.iteration] = value.as_double();
  }
}

std::string scalar_text(const Json& value) {
  return value.is_string() ? value.as_string() : value.dump();
}

int64_t log_interval(const StartEntry& start) {
  const Json* const interval = start.args.find("log_interval");
  return interval && interval->is_int() ? std::max<int64_t>(interval->as_int(), 1) : 1;
}

}  // namespace

std::string RunHistory::option(std::string_view key) const {
  const Json* const value = start().args.find(key);
  return value ? scalar_text(*value) : std::string();
}

void RunReader::begin(const StartEntry& entry, double time) {
  // A run without a step leaves nothing that would be worth keeping.
  const bool anew = runs_.empty() || (entry.iteration == 0 && !runs_.back().loss.empty());
  if (anew) runs_.emplace_back();
  RunHistory& run = runs_.back();
  forget_after(run, entry.iteration);
  run.starts.push_back({entry, time, run.seconds.empty() ? 0 : run.seconds.rbegin()->second});
  run.last_time = time;
}

void RunReader::take_line(const Json& line) {
  const auto head = read_fields<EntryHead>(line);
  if (head.type == kStartEntry) return begin(read_fields<StartEntry>(line), head.time);
  const int64_t iteration = read_fields<EntryPlace>(line).iteration;
  if (runs_.empty()) begin({}, 0);
  RunHistory& run = runs_.back();
  run.last_time = std::max(run.last_time, head.time);
  if (head.type == kStepEntry) {
    take_step(run, read_fields<StepEntry>(line));
    const RunStart& start = run.starts.back();
    if (start.time > 0) run.seconds[iteration] = start.before + std::max(0.0, head.time - start.time);
  } else if (head.type == kValidEntry) {
    take_validation(run, read_fields<EvaluationEntry>(line));
  } else if (head.type == kTestEntry) {
    keep(run.test_loss, iteration, read_fields<EvaluationEntry>(line).loss);
  } else if (head.type == kTasksEntry) {
    take_tasks(run, read_fields<TasksEntry>(line));
  } else if (head.type == kSampleEntry) {
    run.samples.push_back(read_fields<SampleEntry>(line));
  } else if (head.type == kSaveEntry) {
    run.saves.push_back(read_fields<SaveEntry>(line));
  } else if (head.type == kEndEntry) {
    run.end_reason = read_fields<EndEntry>(line).reason;
  }
}

void RunReader::take(std::string_view text) {
  if (text.empty()) return;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const std::string& one : split(text, '\n')) {
    ++lines_;
    if (trim(one).empty()) continue;
    const std::string where = concat(path_, ":", lines_);
    const Json line = Json::parse(one, where);
    const JsonNames names(line, where);
    take_line(line);
  }
}

std::vector<RunHistory> read_runs(const std::string& path) {
  std::string text = read_file(path);
  text.resize(text.size() - cut_line(text).size());
  RunReader reader(path);
  reader.take(text);
  std::vector<RunHistory> runs = reader.runs();
  if (runs.empty()) runs.emplace_back().starts.emplace_back();
  return runs;
}

std::vector<OptionRow> differing_options(const std::vector<RunHistory>& runs) {
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const RunHistory& run : runs)
    if (run.start().args.is_object())
      for (const auto& [name, value] : run.start().args.as_object())
        if (known.insert(name).second) names.push_back(name);
  std::vector<OptionRow> rows;
  for (const std::string& name : names) {
    OptionRow row{name, {}};
    for (const RunHistory& run : runs) row.values.push_back(run.option(name));
    if (std::ranges::any_of(row.values, [&](const std::string& value) { return value != row.values[0]; }))
      rows.push_back(std::move(row));
  }
  return rows;
}

std::string progress_text(const RunHistory& run) {
  const std::string done = format_count(run.iteration());
  const int64_t all = run.start().iterations;
  return all > run.iteration() ? done + " of " + format_count(all) : done;
}

std::string last_value_text(const ChartPoints& points) {
  return points.empty() ? "" : format_fixed(points.rbegin()->second, 4);
}

LastLoss last_loss(const RunHistory& run) {
  LoggedStretch stretch;
  for (auto start = run.starts.rbegin(); start != run.starts.rend(); ++start) {
    const int64_t interval = log_interval(start->entry);
    stretch.start = start->entry.iteration;
    if (const auto mean = last_logged_mean(run.loss, interval, stretch)) return {*mean, interval > 1};
    stretch.end = stretch.start;
  }
  return {run.loss.rbegin()->second, false};
}

std::string name_of_run(const RunHistory& run, const std::string& file) {
  namespace fs = std::filesystem;
  fs::path save = fs::path(run.option("save")).lexically_normal();
  if (save.has_relative_path() && !save.has_filename()) save = save.parent_path();
  return save.empty() ? fs::path(file).stem().string() : save.filename().string();
}

std::string date_text(double time) {
  if (time <= 0) return {};
  const auto seconds = static_cast<std::time_t>(time);
  std::tm parts{};
  char text[32];
  ::localtime_r(&seconds, &parts);
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts));
}

double seconds_of(const RunHistory& run) {
  const RunStart& last = run.starts.back();
  return last.before + (last.time > 0 ? std::max(0.0, run.last_time - last.time) : 0);
}

std::string data_of(const RunHistory& run) {
  std::string out;
  for (const char* const name : {"data_path", "train_data_path", "data"})
    if (const Json* const value = run.start().args.find(name)) {
      if (value->is_string() && !value->as_string().empty()) return value->as_string();
      if (!value->is_array()) continue;
      for (const Json& part : value->as_array()) out += (out.empty() ? "" : " ") + scalar_text(part);
      if (!out.empty()) return out;
    }
  return run.option("mock_data") == "true" ? "made-up data (--mock-data)" : "";
}

}  // namespace megalith
