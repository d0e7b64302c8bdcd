#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/evaluate/likelihoods.h"
#include "libcore/evaluate/task_items.h"

namespace megalith {

/// A figure of a task.
struct Metric {
  std::string name;
  double value = 0;
  std::optional<double> error = {};  // the standard error; nothing: there is none
  bool higher_is_better = true;
};

/// The index of the choice with the largest log-likelihood, and with the largest log-likelihood per
/// character. If several are equal, the first.
size_t likeliest_choice(std::span<const Likelihood> choices);
size_t likeliest_by_length(const TaskItem& item, std::span<const Likelihood> choices);

/// The figures of a task by lm-evaluation-harness' rules, sorted by name. `likelihoods`: of each item, those
/// of its continuations. There is at least one item.
std::vector<Metric> task_metrics(TaskKind kind, std::span<const TaskItem> items,
                                 std::span<const std::vector<Likelihood>> likelihoods);

/// The mean of numbers, and its standard error: nothing for a single number.
double mean_of(std::span<const double> numbers);
std::optional<double> error_of_mean(std::span<const double> numbers);
/// The standard error of exp(-mean), by the bootstrap: from 100,000 samples, which are drawn as
/// lm-evaluation-harness draws them.
std::optional<double> error_of_perplexity(std::span<const double> numbers);

}  // namespace megalith
