#pragma once

#include <string>

namespace megalith {

/// Writes one HTML page about a run, without scripts or external resources: charts of training and validation
/// loss, learning rate, gradient norm and tokens per second, the run's settings, and its sampled texts. Reads
/// the run's JSON lines (train/log/metrics.h); where a resumed run repeats an iteration, the later line
/// counts. Throws kNoInput, kData (file and line), kIo.
void write_report(const std::string& metrics_path, const std::string& html_path);

/// Called when a run begins, with the file to which the run will append its figures. Throws kData when that
/// file holds something that write_report() cannot read, such as a user's own text. The file may be missing.
void check_figures(const std::string& metrics_path);

}  // namespace megalith
