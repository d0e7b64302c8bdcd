#include "libcore/train/log/live_view.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

#include "libcore/base/error.h"
#include "libcore/base/figures/picture.h"
#include "libcore/base/figures/quantile.h"
#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/io/files/file.h"
#include "libcore/io/streams/standard_streams.h"

namespace megalith {
namespace {

constexpr size_t kLabel = 14;  // columns of the names in front of the figures

std::string line_of(const std::string& name, const std::string& value) {
  return name + std::string(kLabel - std::min(kLabel, name.size()), ' ') + value + "\n";
}

std::string figure(double value) {
  return std::isnan(value) ? "" : format_fixed(value, 4);
}

double last_of(const ChartPoints& points) {
  return points.empty() ? std::nan("") : points.rbegin()->second;
}

/// The median of the latest values.
double recent(const ChartPoints& points) {
  constexpr size_t kRecent = 20;
  std::vector<double> values;
  for (auto point = points.rbegin(); point != points.rend() && values.size() < kRecent; ++point)
    values.push_back(point->second);
  return values.empty() ? std::nan("") : quantile(std::move(values), 0.5);
}

/// "[=====>    ]  42 %".
std::string bar(double share, size_t columns) {
  constexpr size_t kRest = 10;
  const size_t width = std::clamp<size_t>(columns > kRest ? columns - kRest : 0, 10, 60);
  const auto full = static_cast<size_t>(share * static_cast<double>(width));
  return concat("[", std::string(std::min(full, width), '='), std::string(width - std::min(full, width), ' '),
                "] ", format_fixed(100 * share, 0), " %");
}

/// The time that the run will still need: that of the process so far, for each step.
std::string time_left(const RunHistory& run) {
  const int64_t began = run.start().iteration, done = run.iteration(), all = run.start().iterations;
  const double seconds = seconds_of(run) - run.starts.back().before;
  if (done <= began || all <= done || seconds <= 0) return {};
  return format_duration(seconds / static_cast<double>(done - began) * static_cast<double>(all - done));
}

std::string state_of(const RunHistory& run, double now) {
  constexpr double kQuiet = 60;  // a run writes a line every step
  if (!run.end_reason.empty()) return "ended: " + run.end_reason;
  const double quiet = now - run.last_time;
  if (run.last_time > 0 && quiet > kQuiet) return "no line for " + format_duration(quiet);
  const std::string left = time_left(run);
  return left.empty() ? "running" : "running, " + left + " left";
}

std::string progress_of(const RunHistory& run, size_t columns) {
  const int64_t done = run.iteration(), all = run.start().iterations;
  std::string out = line_of("step", format_count(done) + (all > 0 ? " of " + format_count(all) : ""));
  if (all > 0)
    out += bar(std::clamp(static_cast<double>(done) / static_cast<double>(all), 0.0, 1.0), columns) + "\n";
  return out;
}

std::string figures_of(const RunHistory& run) {
  std::string out;
  const auto add = [&](const std::string& name, const std::string& value) {
    if (!value.empty()) out += line_of(name, value);
  };
  if (!run.loss.empty()) add("loss", figure(recent(run.loss)) + " (median of the last steps)");
  add("validation", figure(last_of(run.valid_loss)));
  add("test", figure(last_of(run.test_loss)));
  for (const auto& [name, points] : run.tasks) add(name + " ", figure(last_of(points)));
  if (!run.rate.empty()) add("learning rate", format_scientific(last_of(run.rate), 3));
  add("grad norm", figure(last_of(run.grad_norm)));
  if (!run.speed.empty()) add("tokens/s", format_count(std::llround(recent(run.speed))));
  if (!run.tokens.empty()) add("tokens", short_count(last_of(run.tokens)));
  if (run.memory_bytes > 0) add("memory", format_bytes(static_cast<double>(run.memory_bytes)));
  add("time", format_duration(seconds_of(run)));
  if (!run.saves.empty())
    add("checkpoint",
        concat("iteration ", format_count(run.saves.back().iteration), ", ", run.saves.back().path));
  return out;
}

}  // namespace

std::string block_curve(const ChartPoints& points, size_t columns) {
  constexpr std::array kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (points.empty() || columns == 0) return {};
  std::vector<double> sums(columns), counts(columns);
  const auto first = static_cast<double>(points.begin()->first);
  const double range = std::max(1.0, static_cast<double>(points.rbegin()->first) - first + 1);
  for (const auto& [key, value] : points) {
    const double share = (static_cast<double>(key) - first) / range;
    const auto column = static_cast<size_t>(share * static_cast<double>(columns));
    sums[column] += value;
    ++counts[column];
  }
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (size_t i = 0; i < columns; ++i) {
    if (counts[i] == 0) continue;
    sums[i] /= counts[i];
    low = std::min(low, sums[i]);
    high = std::max(high, sums[i]);
  }
  std::string out;
  for (size_t i = 0; i < columns; ++i) {
    if (counts[i] == 0) continue;  // fewer points than columns
    const double level = high > low ? (sums[i] - low) / (high - low) : 0;
    out += kBlocks[std::min(kBlocks.size() - 1, static_cast<size_t>(level * kBlocks.size()))];
  }
  return out;
}

std::string live_view(const std::string& name, const RunHistory& run, double now, size_t columns) {
  std::string text =
      concat(name, ": ", state_of(run, now), "\n", progress_of(run, columns), figures_of(run), "\n");
  if (run.loss.size() > 1)
    text += concat("loss, steps ", format_count(run.loss.begin()->first), " to ",
                   format_count(run.loss.rbegin()->first), "\n", block_curve(run.loss, columns), "\n");
  std::string out;
  for (const std::string& line : split(text, '\n')) out += concat(fitting(printable(line), columns), "\n");
  out.pop_back();
  return out;
}

namespace {

/// The lines of a file that others append to.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}
  /// Whether what was read is no longer there: another run has written the file anew, or cut it.
  bool begins_anew() {
    const ReadableFile file(path_);
    if (part(file, 0, head_.size()) == head_ && file.size() >= read_) return false;
    head_.clear();
    read_ = 0;
    return true;
  }
  /// The complete lines that were appended since the last call.
  std::string next() {
    constexpr size_t kHead = 512;  // the first line of a run has its time
    const ReadableFile file(path_);
    std::string text = part(file, read_, file.size());
    text.resize(text.rfind('\n') + 1);  // nothing if there is no line end
    if (read_ == 0) head_ = text.substr(0, kHead);
    read_ += text.size();
    return text;
  }

 private:
  /// The bytes from `begin` to `end`, or to the file's end.
  static std::string part(const ReadableFile& file, uint64_t begin, uint64_t end) {
    const uint64_t last = std::min<uint64_t>(end, file.size());
    std::string text(last > begin ? last - begin : 0, '\0');
    file.read_at(begin, text.data(), text.size());
    return text;
  }

  std::string path_, head_;  // the file's first bytes, as they were read
  uint64_t read_ = 0;
};

/// The picture drawn over the one before it; what remains of that one is cleared.
std::string drawn_over(const std::string& picture) {
  std::string out = "\x1b[H";
  for (const std::string& line : split(std::string_view(picture).substr(0, picture.size() - 1), '\n'))
    out += line + "\x1b[K\n";
  return out + "\x1b[J";
}

}  // namespace

void watch_run(const std::string& path) {
  // Polled: no notification arrives when another machine appends to a file on a shared file system.
  constexpr auto kPause = std::chrono::seconds(1);
  const bool live = ::isatty(STDOUT_FILENO) == 1;
  GrowingFile file(path);
  std::optional<RunReader> reader(std::in_place, path);
  RunHistory none;  // shown until the file has a line
  none.starts.emplace_back();
  while (true) {
    if (file.begins_anew()) reader.emplace(path);
    reader->take(file.next());
    const RunHistory& run = reader->runs().empty() ? none : reader->runs().back();
    const std::string picture =
        live_view(name_of_run(run, path), run, seconds_since_1970(), columns_of(STDOUT_FILENO));
    write_stdout(live ? drawn_over(picture) : picture);
    flush_stdout();
    if (!live || !run.end_reason.empty()) return;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace megalith
