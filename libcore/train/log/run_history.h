#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/base/figures/chart.h"
#include "libcore/train/log/run_entries.h"

namespace megalith {

/// A process of a run: the first one, or one that resumed it.
struct RunStart {
  StartEntry entry;
  double time = 0;    // seconds since 1970; 0: not known
  double before = 0;  // seconds that the run had taken before
};

/// What a run's file of figures says of the run: curves by iteration, without what was done again.
struct RunHistory {
  std::string name;              // set by whoever read the file
  std::vector<RunStart> starts;  // at least one once a line was read
  ChartPoints loss, valid_loss, test_loss, rate, grad_norm, speed;
  std::map<int64_t, std::map<std::string, double>> valid_sets;  // by iteration and set, if there are several
  ChartPoints tokens;                                           // read up to the iteration
  ChartPoints seconds;                       // that the run had taken, without the time between its processes
  std::map<std::string, ChartPoints> tasks;  // "hellaswag acc": the figures of --eval-tasks
  std::vector<SampleEntry> samples;
  std::vector<SaveEntry> saves;
  int64_t memory_bytes = 0;
  double last_time = 0;    // of the last line, in seconds since 1970; 0: not known
  std::string end_reason;  // empty: the run has not ended, or it was killed

  const StartEntry& start() const { return starts.back().entry; }
  int64_t iteration() const { return loss.empty() ? start().iteration : loss.rbegin()->first; }
  /// The option's value as a text; empty if the run has no such option.
  std::string option(std::string_view key) const;
};

/// Reads files of figures as they grow. A file holds several runs if a run started from the beginning at the
/// end of another's figures.
class RunReader {
 public:
  /// `path`: for messages.
  explicit RunReader(std::string path) : path_(std::move(path)) {}
  /// Takes the lines in `text`, which follow those taken before. kData, with file and line, for what is not
  /// figures.
  void take(std::string_view text);
  const std::vector<RunHistory>& runs() const { return runs_; }

 private:
  void begin(const StartEntry&, double time);
  void take_line(const Json& line);

  std::string path_;
  size_t lines_ = 0;
  std::vector<RunHistory> runs_;
};

/// The runs in a file, the oldest first; at least one. An incomplete last line, as a killed run leaves it, is
/// left out. kNoInput, kIo; kData as RunReader.
std::vector<RunHistory> read_runs(const std::string& path);

/// The options in which the runs differ, with the value of each run.
struct OptionRow {
  std::string name;
  std::vector<std::string> values;
};
std::vector<OptionRow> differing_options(const std::vector<RunHistory>& runs);

/// How far the run is: "120 of 500" iterations; "500" if it has done all.
std::string progress_text(const RunHistory&);
/// The last value, with four decimals; empty if there is none.
std::string last_value_text(const ChartPoints&);
/// The loss in the last line of the log, whichever process printed it, and whether it is a mean of several
/// steps. If no line has been printed yet, the loss of the last step. There must be a step.
struct LastLoss {
  double value;
  bool mean;
};
LastLoss last_loss(const RunHistory&);
/// What readers call the run: the folder that it saves into, else the file's name without its ending.
std::string name_of_run(const RunHistory&, const std::string& file);
/// "2026-11-29 03:12"; empty if the time is not known.
std::string date_text(double time);
/// How long the run has trained.
double seconds_of(const RunHistory&);
/// What the run reads: the files of its data.
std::string data_of(const RunHistory&);

}  // namespace megalith
