#pragma once

#include <map>
#include <optional>
#include <string>

#include "libcore/json/json.h"
#include "libcore/plan/search/search.h"

namespace megalith {

/// What Megatron-LM's training log says about a run.
struct MegatronLog {
  std::map<std::string, std::string> arguments;  // its table of arguments, by name with "_"
  double seconds = 0;                            // median of a step; the first fifth of the steps is left out
  std::optional<double> allocated, reserved;     // bytes, the largest that it printed
};

/// Reads a log. kNoInput; kData when it has no "elapsed time per iteration (ms)".
MegatronLog read_run_log(const std::string& path);
/// Whether the text has such a line; and the log of a text that has already been read.
bool is_run_log(const std::string& text);
MegatronLog parse_run_log(const std::string& text, const std::string& path);

/// The logged run: `base` with the shape, partition, batch, precision and software that the log's arguments
/// name. kUsage for an argument that changes memory or time and is not priced, and for a format that the
/// device does not support; kData for values that no run has.
struct LoggedRun {
  PlanProblem problem;
  Candidate candidate;
};
LoggedRun logged_run(const MegatronLog&, const PlanProblem& base, const std::string& path);

/// The arguments of the log that every plan requires, as if from a command line: sizes of the model, the
/// batch and the world.
Json needed_of(const MegatronLog&);

/// Predicted against measured, a line for each figure in the log; and the same as one JSON object.
std::string verify_text(const MegatronLog&, const LoggedRun&);
std::string verify_json(const MegatronLog&, const LoggedRun&);

/// Coefficients with which the logged run is predicted as measured: the rates of products and of memory are
/// scaled by one factor, within their bounds; communication is unchanged. kUsage when the factor would exceed
/// the bounds.
Coefficients anchored(const MegatronLog&, const LoggedRun&);

}  // namespace megalith
