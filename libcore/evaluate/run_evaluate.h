#pragma once

#include "libcore/evaluate/evaluate_config.h"

namespace megalith {

/// Evaluates the model on the tasks. Prints a table to stdout and writes the files of ResultOptions; speed
/// and memory go to the log. All files of tasks are read before the model is loaded. kUsage if the model has
/// no tokenizer, or if this device or model does not support an option; kData and kNoInput as thrown by
/// ModelSource, Adapter and read_task_items(). If stdout cannot be written, throws what write_stdout()
/// throws.
void run_evaluate(const EvaluateConfig&);

}  // namespace megalith
