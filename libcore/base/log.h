#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "libcore/base/error.h"

namespace megalith {

/// Where log lines go in place of console and files, for tests. Lines come without their newline. The sink is
/// called from one thread at a time. Returns the sink that was there.
using LogSink = std::function<void(const std::string&)>;
LogSink set_log_sink(LogSink sink);

/// Warnings and errors (kUrgent) go to stderr whatever the console is.
enum class LogKind : uint8_t { kNote, kUrgent };
void log_line(const std::string& line, LogKind kind = LogKind::kNote);

/// Where notes go: stderr unless the program's log is what upstream prints to stdout, as `| tee log` wants
/// it; a stdout that fails is given up for stderr, with a word. kNone: nowhere but to the files, urgent lines
/// too.
enum class LogConsole : uint8_t { kStderr, kStdout, kNone };
void set_log_console(LogConsole console);
/// A file of the log. When it cannot be written, that is said once, on stderr, and the log goes on without
/// it.
struct LogFile {
  int descriptor;     // open for writing; the log's from now on, to the end of the process
  std::string path;   // for that message
  bool times = true;  // the date and time stand before a line
};
/// Lines of every kind go there, too.
void add_log_file(const LogFile& file);
/// For set_muted_sink(): lines go there alone.
LogSink sink_to_file(const LogFile& file);
/// Throws kIo, with the first file's path and the reason, when one of these could not be written.
void check_log_files();
/// "2026-11-22 19:44:51", as Megatron writes times.
std::string time_now();

/// Drops lines and progress of the calling thread, so that of several ranks one speaks for all. Returns
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
/// Where the calling thread's lines go while it is muted, instead of being dropped; empty: nowhere.
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

/// Draws what a wait is for ("loading model …") where progress lines may be drawn; the next line of the log
/// or of progress takes its place.
void show_status(const std::string& text);

/// A progress line with rate and time left, redrawn in place on a terminal at most ten times a second and cut
/// to its width, because a line that wraps cannot be redrawn; silent elsewhere. A log line written meanwhile
/// first clears it. Destruction clears it.
class Progress {
 public:
  /// total 0: unknown (no percentage, no ETA). unit: "docs", "tokens"; "B" is printed in binary units.
  /// `before` of the total were done by an earlier run: they are shown, but do not count for the rate,
  /// because that is this run's.
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
