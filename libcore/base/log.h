#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "libcore/base/error.h"

namespace megalith {

/// Where log lines go instead of console and files, for tests. Lines come without their newline. The sink is
/// called by one thread at a time. Returns the previous sink.
using LogSink = std::function<void(const std::string&)>;
LogSink set_log_sink(LogSink sink);

/// Warnings and errors (kUrgent) go to stderr whatever the console is.
enum class LogKind : uint8_t { kNote, kUrgent };
void log_line(const std::string& line, LogKind kind = LogKind::kNote);

/// Where notes go. kStderr is the default. kStdout is for programs whose log is what upstream prints to
/// stdout, for `| tee log`; if stdout fails, a warning says so and notes go to stderr. kNone: notes and
/// urgent lines go only to the files.
enum class LogConsole : uint8_t { kStderr, kStdout, kNone };
void set_log_console(LogConsole console);
/// A file of the log. If it cannot be written, one line on stderr says so, and the log continues without it.
struct LogFile {
  int descriptor;     // open for writing; belongs to the log from now on, until the process ends
  std::string path;   // for that message
  bool times = true;  // lines begin with date and time
};
/// Lines of every kind go there as well.
void add_log_file(const LogFile& file);
/// For set_muted_sink(): lines go only to this file.
LogSink sink_to_file(const LogFile& file);
/// Throws kIo if one of these could not be written, with the first one's path and the reason.
void check_log_files();
/// "2026-11-22 19:44:51", as Megatron writes times.
std::string time_now();

/// Drops lines and progress of the calling thread, so that one of several ranks speaks for all. Returns
/// whether they were dropped before.
bool mute_this_thread(bool mute);
/// Mutes the calling thread while it lives; destroyed by the same thread.
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

/// One line to the log.
template <class... Parts>
void log(const Parts&... parts) {
  log_line(concat(parts...));
}

/// One line to the log, marked as a warning.
template <class... Parts>
void warn(const Parts&... parts) {
  log_line(concat("warning: ", parts...), LogKind::kUrgent);
}

/// One line that ends a run: why it stopped.
template <class... Parts>
void tell(const Parts&... parts) {
  log_line(concat(parts...), LogKind::kUrgent);
}

void set_quiet(bool quiet);
bool quiet();
bool progress_visible();  // stderr is a terminal, and not quiet()

/// Shows what a wait is for ("loading model …") where progress lines may be drawn. The next log or progress
/// line replaces it.
void show_status(const std::string& text);

/// A progress line with rate and time left. On a terminal it is redrawn in place, at most ten times a second,
/// and cut to the terminal's width, since a wrapped line cannot be redrawn. Elsewhere nothing is drawn. A log
/// line clears it first, and so does the destructor.
class Progress {
 public:
  /// total 0: unknown (no percentage, no ETA). unit: "docs", "tokens"; "B" is printed in binary units.
  /// `before` of the total were done by an earlier run: they are shown but do not count for the rate.
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
