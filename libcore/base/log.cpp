#include "libcore/base/log.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <unistd.h>

#include "libcore/base/process.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

// The log is the library's only global state: lines come from every folder and thread.
struct LogState {
  std::mutex mutex;
  LogSink sink;
  LogConsole console = LogConsole::kStderr;
  struct OpenFile {
    LogFile file;
    std::FILE* stream;
    int error = 0;  // errno of the first failed write, which is the last write; 0: none
  };
  std::vector<std::shared_ptr<OpenFile>> files, opened;  // `files` get all lines; `opened`: all files
  bool quiet = false;
  bool line_drawn = false;
};

LogState& state() {
  static LogState* const kState = new LogState;  // never destroyed: threads may log until the process ends
  return *kState;
}

thread_local bool muted = false;
thread_local LogSink muted_sink;

void clear_drawn_line(LogState& s) {
  if (!std::exchange(s.line_drawn, false)) return;
  std::fputs("\r\x1b[K", stderr);
}

void put_line(std::FILE* to, const std::string& line) {
  std::fwrite((line + '\n').data(), 1, line.size() + 1, to);
}

/// Returns true if the line was written to stdout. If not, makes stderr the console from now on and returns
/// false: a run must not end because the reader of its log is gone.
bool put_on_stdout(LogState& s, const std::string& line) {
  put_line(stdout, line);
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return true;
  const int reason = errno;
  std::clearerr(stdout);
  s.console = LogConsole::kStderr;
  put_line(stderr,
           concat("warning: stdout: cannot write: ", std::strerror(reason), "; the log continues here"));
  return false;
}

void put_on_console(LogState& s, const std::string& line, LogKind kind) {
  if (s.console == LogConsole::kNone) return;
  clear_drawn_line(s);
  if (s.console == LogConsole::kStdout && kind == LogKind::kNote && put_on_stdout(s, line)) return;
  put_line(stderr, line);
}

void put_in_file(LogState& s, LogState::OpenFile& to, const std::string& line) {
  if (to.error != 0) return;
  errno = 0;
  put_line(to.stream, to.file.times ? time_now() + ' ' + line : line);
  if (std::fflush(to.stream) == 0 && !std::ferror(to.stream)) return;
  to.error = errno != 0 ? errno : EIO;
  clear_drawn_line(s);
  put_line(stderr, concat("warning: ", to.file.path, ": cannot write: ", std::strerror(to.error),
                          "; the log continues without it"));
}

std::shared_ptr<LogState::OpenFile> open_file(LogState& s, const LogFile& file) {
  std::FILE* const stream = ::fdopen(file.descriptor, "a");
  if (stream == nullptr) fail(ErrorKind::kIo, file.path, ": cannot be written: ", std::strerror(errno));
  return s.opened.emplace_back(std::make_shared<LogState::OpenFile>(LogState::OpenFile{file, stream}));
}

/// Draws text on the terminal's last line, except in its last column, where a terminal would wrap.
void draw_line(const std::string& text) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  const std::string shown = printable(text);
  std::fputs(("\r" + std::string(fitting(shown, columns_of(STDERR_FILENO) - 1)) + "\x1b[K").c_str(), stderr);
  s.line_drawn = true;
}

}  // namespace

LogSink set_log_sink(LogSink sink) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  return std::exchange(s.sink, std::move(sink));
}

bool mute_this_thread(bool mute) {
  return std::exchange(muted, mute);
}

void set_muted_sink(LogSink sink) {
  muted_sink = std::move(sink);
}

void set_log_console(LogConsole console) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  s.console = console;
}

void add_log_file(const LogFile& file) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  s.files.push_back(open_file(s, file));
}

LogSink sink_to_file(const LogFile& file) {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  return [&s, to = open_file(s, file)](const std::string& line) {
    const std::lock_guard alone(s.mutex);
    put_in_file(s, *to, line);
  };
}

void check_log_files() {
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  for (const auto& to : s.opened)
    if (to->error != 0) fail(ErrorKind::kIo, to->file.path, ": cannot write: ", std::strerror(to->error));
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  char text[32];
  localtime_r(&now, &parts);
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

namespace {

/// Makes a line safe for a terminal and for those who read the log, since names in it come from files and
/// peers. Shortens warnings and errors, each of their lines and the whole, but not notes, which may contain
/// commands for copying.
std::string shown(const std::string& line, LogKind kind) {
  constexpr size_t kMost = 2000, kMostOfAll = 256 << 10;
  if (kind != LogKind::kUrgent) return printable_message(line);
  return shortened(printable_message(line, kMost), kMostOfAll);
}

}  // namespace

void log_line(const std::string& given, LogKind kind) {
  const std::string line = shown(given, kind);
  if (muted) {
    if (muted_sink) muted_sink(line);
    return;
  }
  LogState& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.sink) {
    s.sink(line);
    return;
  }
  for (const auto& file : s.files) put_in_file(s, *file, line);
  put_on_console(s, line, kind);
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

namespace {

/// How long work may take before it says what it does where no progress line is drawn.
constexpr std::chrono::seconds kSilent{2};

}  // namespace

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
  const auto now = std::chrono::steady_clock::now();
  if (!visible_) {
    const bool said = drawn_ > start_;
    if (said || done == total_ || now - start_ < kSilent) return;
    drawn_ = now;
    return log_line(line(done, note));
  }
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
