#pragma once

#include "libcore/model/measure.h"
#include "libcore/train/step/layout.h"

namespace megalith {

/// One of a rank's chunks of a run, as measure() takes it.
MeasureInput chunk_input(const RunShape&, const Coord& at, int chunk);

}  // namespace megalith
