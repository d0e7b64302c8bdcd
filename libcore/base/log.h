#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "libcore/base/error.h"

namespace megalith {

/// For tests: receives every log line, without its newline, in place of the console and the files. Only one
/// thread at a time calls the sink. set_log_sink() returns the previous sink.
using LogSink = std::function<void(const std::string&)>;
LogSink set_log_sink(LogSink sink);

/// kUrgent, for warnings and errors: goes to stderr even if the console is stdout.
enum class LogKind : uint8_t { kNote, kUrgent };
void log_line(const std::string& given, LogKind kind = LogKind::kNote);

/// Where notes go. kStderr is the default. kStdout is for programs whose upstream counterpart logs to stdout,
/// so that `| tee log` works; if stdout fails, a warning says so and notes go to stderr. kNone: neither notes
/// nor urgent lines are shown; both go only to the log files.
enum class LogConsole : uint8_t { kStderr, kStdout, kNone };
void set_log_console(LogConsole console);
/// A file of the log. If it cannot be written, one line on stderr says so, and the log continues without it.
struct LogFile {
  int descriptor;     // open for writing; belongs to the log from now on, until the process ends
  std::string path;   // for the message on stderr
  bool times = true;  // lines begin with date and time
};
/// From now on, lines of every kind also go to `file`.
void add_log_file(const LogFile& file);
/// A sink for set_muted_sink() that writes each line to `file` and nowhere else.
LogSink sink_to_file(const LogFile& file);
/// Throws kIo if writing any log file has failed, with the path of the first such file and the reason.
void check_log_files();
/// "2026-11-22 19:44:51", as Megatron writes times.
std::string time_now();

/// Mutes or unmutes the calling thread: a muted thread logs no lines and shows no progress, so that one of
/// several ranks speaks for all. Returns whether the thread was muted before.
bool mute_this_thread(bool mute);
/// Mutes the thread that constructs it until it is destroyed, which the same thread must do.
class Muted {
 public:
  Muted() : before_(mute_this_thread(true)) {}
  ~Muted() { mute_this_thread(before_); }
  Muted(const Muted&) = delete;
  Muted& operator=(const Muted&) = delete;

 private:
  bool before_;
};
/// Where the calling thread's lines go while it is muted; empty: they are dropped.
void set_muted_sink(LogSink sink);

/// Logs one line.
template <class... Parts>
void log(const Parts&... parts) {
  log_line(concat(parts...));
}

/// Logs one line, marked as a warning.
template <class... Parts>
void warn(const Parts&... parts) {
  log_line(concat("warning: ", parts...), LogKind::kUrgent);
}

/// Logs why a run stops, as an urgent line.
template <class... Parts>
void tell(const Parts&... parts) {
  log_line(concat(parts...), LogKind::kUrgent);
}

void set_quiet(bool quiet);
bool quiet();
bool progress_visible();  // stderr is a terminal, and the thread is neither muted nor quiet()

/// Shows what the user is waiting for ("loading model …") if progress_visible(). The next log or progress
/// line replaces it.
void show_status(const std::string& text);

/// A progress line with rate and time left. On a terminal it is redrawn in place, at most ten times a second,
/// and truncated to the terminal's width, since a wrapped line cannot be redrawn. Where it is not drawn
/// (progress_visible()), work of more than two seconds logs it once. A log line and the destructor clear it.
class Progress {
 public:
  /// total 0: unknown (no percentage, no ETA). unit: "docs", "tokens"; "B" is printed in binary units.
  /// `before`: how much of the total an earlier run has done; it is shown but does not count for the rate.
  Progress(std::string label, int64_t total, std::string unit, int64_t before = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance_to(int64_t done, const std::string& note = {});
  double seconds() const;

 private:
  /// "label  42%  420/1,000 docs  35.0 docs/s  ETA 16.6 s  note".
  std::string line(int64_t done, const std::string& note) const;

  std::string label_, unit_;
  int64_t total_, before_;
  bool visible_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace megalith
