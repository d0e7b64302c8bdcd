#pragma once

#include <string>

#include "libcore/config/checkpoint_config.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {

/// Why a run must not save to --save: that folder holds checkpoints of an earlier run, in any format, or
/// another tool's model, and this run neither continues from the newest of them nor has
/// --overwrite-output-dir. Names the ways out. Empty: it may. `start`: where the run begins; null: afresh.
std::string refusal_to_replace(const CheckpointConfig&, const StartPoint* start, Trained);

}  // namespace megalith
