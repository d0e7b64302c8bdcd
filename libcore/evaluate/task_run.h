#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/evaluate/few_shots.h"
#include "libcore/evaluate/metrics.h"
#include "libcore/evaluate/pair_encoder.h"
#include "libcore/evaluate/task_specs.h"

namespace megalith {

/// A task from its file to its figures: items are read, their texts encoded, likelihoods taken, and figures
/// made of these.
class TaskRun {
 public:
  /// Reads the items, and those that examples are drawn from. kUsage if --fewshot-data names a file for
  /// texts, which have no examples; kData if the items of that file are of another kind; and the errors of
  /// read_task_items().
  TaskRun(TaskSpec spec, const TaskOptions& options);

  /// Appends the texts of all items to `texts`.
  void encode(PairEncoder& encoder, std::vector<ScoredTokens>& texts);
  /// Takes the likelihoods of the texts that encode() appended, at the beginning of `likelihoods`, in place
  /// of earlier ones. Returns the rest of these.
  std::span<const Likelihood> take(std::span<const Likelihood> likelihoods);

  const std::string& name() const { return spec_.name; }
  TaskKind kind() const { return task_.kind; }
  const std::vector<TaskItem>& items() const { return task_.items; }
  size_t items_in_file() const { return items_in_file_; }
  int64_t shots() const { return shots_; }  // examples before each item
  uint64_t bytes() const;                   // about how many bytes of text encode() encodes
  /// After encode(): the context of an item, with its examples, and what is scored after it.
  const std::string& context(size_t item) const { return requests_[item].context; }
  std::string continuation(size_t item, size_t number) const;
  /// After take(): the likelihoods of each item's continuations, and the figures.
  const std::vector<std::vector<Likelihood>>& likelihoods() const { return likelihoods_; }
  std::vector<Metric> metrics() const { return task_metrics(kind(), items(), likelihoods_); }

 private:
  struct Request {
    std::string context;
    std::vector<size_t> windows = {};  // for each continuation, how many texts it is scored in
  };
  void read_examples();

  TaskSpec spec_;
  TaskOptionNames names_;
  TaskItems task_;
  size_t items_in_file_;
  int64_t shots_, seed_;
  std::vector<TaskItem> examples_;  // those of --fewshot-data, or of the whole own file
  std::vector<Request> requests_;
  std::vector<std::vector<Likelihood>> likelihoods_;
};

/// Reads the tasks that the specs name. kUsage if examples are wanted, but no task has any; and the errors of
/// TaskRun.
std::vector<TaskRun> read_tasks(const std::vector<TaskSpec>& specs, const TaskOptions& options);

/// The texts of all tasks, in their order, for a model with a vocabulary of this size. Throws what
/// PairEncoder throws and, beginning with `tokenizer`, what check_ids() does.
std::vector<ScoredTokens> encode_tasks(std::span<TaskRun> tasks, PairEncoder& encoder, int64_t vocabulary,
                                       std::string_view tokenizer);

}  // namespace megalith
