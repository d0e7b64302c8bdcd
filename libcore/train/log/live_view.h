#pragma once

#include <cstddef>
#include <string>

#include "libcore/train/log/run_history.h"

namespace megalith {

/// The picture of a run for a terminal, in lines of at most `columns` characters: how far it is, its latest
/// figures and checkpoint, and its loss as a curve. `now`: seconds since 1970.
std::string live_view(const std::string& name, const RunHistory& run, double now, size_t columns);

/// Values as a line of `columns` characters whose blocks rise with the values: "▇▅▃▂▁".
std::string block_curve(const ChartPoints& points, size_t columns);

/// Shows the run in a file of figures until it ends: on a terminal the picture is drawn again every second,
/// else it is printed once. kNoInput, and what RunReader::take() throws.
void watch_run(const std::string& path);

}  // namespace megalith
