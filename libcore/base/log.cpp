#include "libcore/base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

#include <unistd.h>

#include "libcore/base/process.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

// The log sink is the one global of the library: lines come from every room and thread.
struct LogState {
  std::mutex mutex;
  LogSink sink;
  bool quiet = false;
  bool line_drawn = false;
};

LogState& state() {
  static LogState* const kState = new LogState;  // never destroyed: threads may log until the process ends
  return *kState;
}

thread_local bool muted = false;

void clear_drawn_line(LogState& s) {
  if (!std::exchange(s.line_drawn, false)) return;
  std::fputs("\r\x1b[K", stderr);
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  return std::exchange(s.sink, std::move(sink));
}

void mute_this_thread(bool mute) {
  muted = mute;
}

void log_line(const std::string& line) {
  if (muted) return;
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.sink) {
    s.sink(line);
    return;
  }
  clear_drawn_line(s);
  std::fwrite((line + '\n').data(), 1, line.size() + 1, stderr);
}

void set_quiet(bool quiet) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  s.quiet = quiet;
}

bool quiet() {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  return s.quiet;
}

bool progress_visible() {
  return !muted && !quiet() && ::isatty(STDERR_FILENO) == 1;
}

Progress::Progress(std::string label, int64_t total, std::string unit)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      visible_(progress_visible()),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

Progress::~Progress() {
  if (!visible_) return;
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  clear_drawn_line(s);
}

double Progress::seconds() const {
  return seconds_since(start_);
}

void Progress::advance_to(int64_t done, const std::string& note) {
  if (!visible_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - drawn_ < std::chrono::milliseconds(100) && done != total_) return;
  drawn_ = now;
  const std::string line = render(label_, done, total_, unit_, seconds(), note);
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  std::fputs(("\r" + line + "\x1b[K").c_str(), stderr);
  s.line_drawn = true;
}

std::string Progress::render(const std::string& label, int64_t done, int64_t total, const std::string& unit,
                             double seconds, const std::string& note) {
  const auto amount = [&](double n) {
    return unit == "B" ? format_bytes(n) : format_count(static_cast<int64_t>(n)) + ' ' + unit;
  };
  std::string line = label;
  if (total > 0) line += "  " + std::to_string(100 * done / total) + "%";
  line += "  " + (total > 0 && unit != "B" ? format_count(done) + "/" + amount(static_cast<double>(total))
                                           : amount(static_cast<double>(done)));
  const double rate = seconds > 0 ? static_cast<double>(done) / seconds : 0;
  line += "  " + (unit == "B" ? format_bytes(rate) : format_fixed(rate, 1) + ' ' + unit) + "/s";
  if (total > 0 && rate > 0) line += "  ETA " + format_duration(static_cast<double>(total - done) / rate);
  if (!note.empty()) line += "  " + note;
  return line;
}

}  // namespace megalith
