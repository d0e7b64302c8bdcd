#pragma once

#include <memory>

#include "libcore/train/log/run_observer.h"
#include "libcore/train/log/run_outputs.h"

namespace megalith {

/// Adds the observers that every run has: Megatron's log lines, the lines of --log-style, JSON lines,
/// TensorBoard, the progress line on a terminal, and the report. `outputs` is null on all ranks but the
/// first. Throws what RunLog throws.
void add_run_logs(RunObservers&, const ObservedRun&, std::unique_ptr<RunOutputs> outputs);

}  // namespace megalith
