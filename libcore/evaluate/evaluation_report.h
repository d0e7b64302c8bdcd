#pragma once

#include <span>
#include <string>

#include "libcore/evaluate/evaluate_config.h"
#include "libcore/evaluate/task_run.h"
#include "libcore/json/json.h"

namespace megalith {

/// A task with its figures.
struct TaskResult {
  const TaskRun* task;
  std::vector<Metric> metrics;
};

/// The table for stdout: a line for each figure.
std::string results_table(std::span<const TaskResult> results);
/// The results under the keys that lm-evaluation-harness gives them ("acc,none").
Json results_json(std::span<const TaskResult> results, const EvaluateConfig& config);
/// The item of that number: its texts, their log-likelihoods and what it counts.
Json sample_json(const TaskRun& task, size_t number);

}  // namespace megalith
