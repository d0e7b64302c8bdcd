#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/evaluate/likelihoods.h"
#include "libcore/evaluate/task_run.h"
#include "libcore/io/run/run_files.h"
#include "libcore/parallel/communicator.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

/// The tasks of --eval-tasks, under the names that the training programs give these options.
TaskOptions task_options(const TrainConfig&);
/// Reports options of --eval-tasks that are wrong, and a run that has no rank with the whole model.
void check_eval_tasks(const PretrainConfig&, Problems&);

/// Adds the files of the tasks to those of the run.
void reads_eval_tasks(RunFiles& files, const TrainConfig&);

/// Evaluates the tasks of --eval-tasks while the model is trained, by the rules of megalith-eval. Every rank
/// calls the same functions. The first one reads the files; each reads a share of the texts with its model.
class RunTasks {
 public:
  /// Reads the files. Throws what read_tasks() throws.
  RunTasks(const PretrainConfig&, Communicator& world);
  bool wanted() const { return wanted_; }
  /// Turns the tasks into tokens for the run's model on this device. Throws what PairEncoder throws.
  void encode(const PretrainConfig&, std::string_view device);
  /// The bytes that each rank of such a run needs for an evaluation, beside those that training holds.
  size_t bytes(const RunShape&) const;
  /// The figures of the model as it is, on the first rank; the other ranks get an empty report. If a
  /// log-likelihood is not a number, warns and reports no figures: the run may still recover. Every rank asks
  /// `stop` between two passes of its model. Nothing, on all ranks, if it ended the reading of one.
  std::optional<TasksReport> evaluate(int64_t iteration, Trainer&, const std::function<bool()>& stop);

 private:
  struct Part {
    std::vector<Likelihood> likelihoods;
    std::string failure;
    bool stopped = false;
    template <class V>
    void members(V&& v) {  // see parallel/exchange.h
      v(likelihoods, failure, stopped);
    }
  };
  Part read_part(Trainer&, const std::function<bool()>& stop);
  /// The likelihoods of all texts, in the tasks' order, from those that the ranks have read.
  std::vector<Likelihood> in_order(std::span<const Part>) const;

  Communicator& world_;
  std::chrono::milliseconds wait_;
  bool wanted_;
  std::vector<TaskRun> tasks_;       // only on the first rank
  std::vector<size_t> order_;        // the texts in the order in which the ranks share them
  std::vector<ScoredTokens> texts_;  // this rank's share
  ReadingSize size_;                 // of a rank that reads all of them
};

}  // namespace megalith
