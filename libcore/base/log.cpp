#include "libcore/base/log.h"

#include <cstdio>
#include <mutex>
#include <utility>

#include <unistd.h>

#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
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

/// Never in the last column: there a terminal would go to the next line.
void draw_line(const std::string& text) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  std::fputs(("\r" + std::string(fitting(text, columns_of(STDERR_FILENO) - 1)) + "\x1b[K").c_str(), stderr);
  s.line_drawn = true;
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

void show_status(const std::string& text) {
  if (progress_visible()) draw_line(text);
}

Progress::Progress(std::string label, int64_t total, std::string unit, int64_t before)
    : label_(std::move(label)),
      unit_(std::move(unit)),
      total_(total),
      before_(before),
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
  draw_line(line(done, note));
}

std::string Progress::line(int64_t done, const std::string& note) const {
  const bool bytes = unit_ == "B", bounded = total_ > 0;
  const auto amount = [&](int64_t n) {
    return bytes ? format_bytes(static_cast<double>(n)) : format_count(n) + ' ' + unit_;
  };
  std::string out = label_;
  if (bounded) out += "  " + std::to_string(100 * done / total_) + "%";
  out += "  " + (bounded && !bytes ? format_count(done) + "/" + amount(total_) : amount(done));
  const double so_far = seconds(), rate = so_far > 0 ? static_cast<double>(done - before_) / so_far : 0;
  out += "  " + (bytes ? format_bytes(rate) : format_fixed(rate, 1) + ' ' + unit_) + "/s";
  if (bounded && rate > 0) out += "  ETA " + format_duration(static_cast<double>(total_ - done) / rate);
  if (!note.empty()) out += "  " + note;
  return out;
}

}  // namespace megalith
