#pragma once

#include <cstddef>
#include <string>

#include "libcore/train/log/run_history.h"

namespace megalith {

/// The picture of a run for a terminal, a line each: how far it is, its figures, its loss as a curve, its
/// latest evaluations and checkpoints. `now`: seconds since 1970. Lines have at most `columns` characters.
std::string live_view(const RunHistory& run, double now, size_t columns);

/// Values as a line of `columns` characters whose blocks rise with the values: "▇▅▃▂▁".
std::string block_curve(const ChartPoints& points, size_t columns);

/// Shows the run in a file of figures until it ends: on a terminal the picture is drawn again every second,
/// else it is printed once. kNoInput, and what RunReader::take() throws.
void watch_run(const std::string& path);

}  // namespace megalith
