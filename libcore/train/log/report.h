#pragma once

#include <string>

namespace megalith {

/// Writes one HTML page about a run, without scripts and without anything from outside: loss curves (training
/// and validation), learning rate, gradient norm and tokens per second as pictures, the run's facts, and its
/// sampled texts. Reads the run's JSON lines (train/log/metrics.h); where a resumed run repeats an iteration,
/// the later line counts. Throws kNoInput, kData (file and line), kIo.
void write_report(const std::string& metrics_path, const std::string& html_path);

/// Throws kData when a file, to which a run would add its figures, holds what write_report() could not read:
/// somebody's own text, say. For the run's beginning; one that is not there is well.
void check_figures(const std::string& metrics_path);

}  // namespace megalith
