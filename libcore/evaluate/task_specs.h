#pragma once

#include <string>
#include <vector>

#include "libcore/evaluate/evaluate_config.h"
#include "libcore/evaluate/task_items.h"

namespace megalith {

/// A task as --tasks and --fewshot-data name it.
struct TaskSpec {
  std::string name, path;
  const TaskForm* form = nullptr;  // null: our own form
  std::string examples = {};       // the file that examples are drawn from; empty: `path`
};

/// The tasks that the options name, in their order. Adds a problem for each that is not a task.
std::vector<TaskSpec> task_specs(const TaskOptions&, Problems&);

}  // namespace megalith
