#pragma once

#include <string>
#include <vector>

#include "libcore/train/log/run_history.h"

namespace megalith {

/// The HTML page about one run: charts of training, validation and test loss, learning rate, gradient norm,
/// tokens per second and tasks, the run's settings, and its sampled texts. `earlier`: other runs in the same
/// file, which the page counts.
std::string run_page(const RunHistory& run, size_t earlier);

/// Writes that page about the last run in a file of figures (train/log/metrics.h); where a resumed run
/// repeats an iteration, the later line counts. Throws kNoInput, kData (file and line), kIo.
void write_report(const std::string& metrics_path, const std::string& html_path);

/// Called when a run begins, with the file to which the run will append its figures. Returns the number of
/// runs in it; 0 if the file is missing. Throws kData when that file holds something that write_report()
/// cannot read, such as a user's own text.
size_t check_figures(const std::string& metrics_path);

}  // namespace megalith
