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
  double seconds = 0;                            // median step time, without the first fifth of the steps
  std::optional<double> allocated, reserved;     // bytes, the largest in the log
};

/// Reads a log. kNoInput; kData when it has no "elapsed time per iteration (ms)".
MegatronLog read_run_log(const std::string& path);
/// is_run_log(): whether the text has a line with "elapsed time per iteration (ms)". parse_run_log(): reads a
/// log whose text has already been read from `path`.
bool is_run_log(const std::string& text);
MegatronLog parse_run_log(const std::string& text, const std::string& path);

/// The logged run: `base` with the shape, partition, batch, precision and software that the log's arguments
/// name. kUsage for an argument that changes memory or time but is not priced, and for a format that the
/// device does not support; kData for impossible values.
struct LoggedRun {
  PlanProblem problem;
  Candidate candidate;
};
LoggedRun logged_run(const MegatronLog&, const PlanProblem& base, const std::string& path);

/// The options that every plan requires (sizes of the model, the batch and the world), with the log's values.
Json needed_of(const MegatronLog&);

/// Compares prediction and measurement for each figure in the log: as one line each, or as one JSON object.
std::string verify_text(const MegatronLog&, const LoggedRun&);
std::string verify_json(const MegatronLog&, const LoggedRun&);

/// Coefficients with which the predicted step time of the run equals the measured one: the rates of products
/// and of memory are scaled by one factor, and communication is unchanged. kUsage when the factor would
/// exceed its bounds.
Coefficients anchored(const MegatronLog&, const LoggedRun&);

}  // namespace megalith
