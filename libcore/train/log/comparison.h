#pragma once

#include <string>
#include <vector>

#include "libcore/train/log/run_history.h"

namespace megalith {

/// The runs in several files of figures, with names that tell them apart: those of the files, and a number
/// for each run of a file that holds several. Throws what read_runs() throws.
std::vector<RunHistory> read_named_runs(const std::vector<std::string>& paths);

/// One HTML page about several runs, finished or not: their losses over iterations, tokens and time, a table
/// of figures, and the options in which they differ.
std::string comparison_page(const std::vector<RunHistory>& runs);

/// The same tables as text, with lines of at most `columns` characters.
std::string comparison_text(const std::vector<RunHistory>& runs, size_t columns);

}  // namespace megalith
