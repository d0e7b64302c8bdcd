#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/config/pretrain_config.h"
#include "libcore/parallel/communicator.h"
#include "libcore/parallel/topology.h"

namespace megalith {

/// The figures of one optimizer step.
struct StepFigures {
  int64_t iteration = 0;         // from 1
  int64_t consumed_samples = 0;  // after this step
  double loss = 0;               // mean over the global batch's tokens, nats
  double rate = 0;               // the learning rate of this step
  double next_rate = 0;          // the learning rate of the next step, which is the one that Megatron logs
  double grad_norm = 0;          // before clipping; NaN or infinite if the step was skipped
  double loss_scale = 1;         // after this step
  double seconds = 0;
  int64_t samples = 0;  // of this step
  int64_t tokens = 0;
  int64_t seen_tokens = 0;   // of all steps up to this one
  double flops = 0;          // model_flops() over all ranks, in proportion to the step's tokens
  uint64_t peak_memory = 0;  // the most bytes that this process has held
  bool skipped = false;      // no update: loss or gradient was not finite
};

struct StepReport {
  StepFigures figures = {};
  double own_loss = 0;       // Trainer::own_loss(); only set if an observer needs it
  double stage_seconds = 0;  // see Trainer::stage_seconds()
};

struct EvaluationReport {
  std::string where = {};  // "iteration 100", "iteration 100 on validation set" or "… on test set"
  bool test = false;       // on the test set instead of the validation set
  std::string set = {};    // name or number of the validation set, if there are several
  int64_t iteration = 0;
  double loss = 0;
  std::optional<double> train_loss = {};  // set if an observer needs it and there are training data
  std::optional<double> accuracy = {};  // share of the labels that have the largest logit; unset: not counted
  int64_t batches = 0, samples = 0;     // that were read; the last batch of a whole set may not be full
  double seconds = 0;
};

/// What --eval-tasks says of the model.
struct TasksReport {
  struct Figure {
    std::string task, name;  // "hellaswag", "acc"
    double value = 0;
    std::optional<double> error = {};  // the standard error
  };
  int64_t iteration = 0;
  std::vector<Figure> figures = {};
  double seconds = 0;
};

struct SampleReport {
  int64_t iteration;
  std::string prompt, text;
};

/// A checkpoint that is complete.
struct SaveReport {
  int64_t iteration;
  std::string path;
  std::optional<int64_t> number = {};  // in its name, in a format that counts the saves of a run
};

struct EndReport {
  int64_t iteration;
  std::string reason;
  bool lost = false;  // the run fails: loss or gradient stayed non-finite
};

/// What an observer needs from the run.
struct ObserverNeeds {
  bool own_loss = false;    // needs StepReport::own_loss; with a GPU, the host then waits in each step
  bool train_loss = false;  // needs EvaluationReport::train_loss
};

/// Receives the events of a run and writes log lines, figures or a report from them. Every rank has its own
/// observers and calls them for the same events in the same order, so an observer may communicate with the
/// other ranks.
class RunObserver {
 public:
  virtual ~RunObserver() = default;
  virtual ObserverNeeds needs() const { return {}; }
  virtual void before_step(int64_t /*steps_done*/) {}
  virtual void step(const StepReport&) {}
  virtual void evaluation(const EvaluationReport&) {}
  virtual void tasks(const TasksReport&) {}    // only on the first rank
  virtual void sample(const SampleReport&) {}  // only on the first rank
  virtual void saved(const SaveReport&) {}
  /// The evaluation that was due after a step is done, and the save that was due has begun.
  virtual void step_done(int64_t /*iteration*/) {}
  virtual void end(const EndReport&) {}
};

/// Several observers, called one after the other.
class RunObservers final : public RunObserver {
 public:
  /// Adds an observer; ignores null.
  void add(std::unique_ptr<RunObserver>);

  ObserverNeeds needs() const override;
  void before_step(int64_t iteration) override;
  void step(const StepReport&) override;
  void evaluation(const EvaluationReport&) override;
  void tasks(const TasksReport&) override;
  void sample(const SampleReport&) override;
  void saved(const SaveReport&) override;
  void step_done(int64_t iteration) override;
  void end(const EndReport&) override;

 private:
  std::vector<std::unique_ptr<RunObserver>> observers_;
};

/// What an observer is told about a run before its first step. The references outlive the observers.
struct ObservedRun {
  const PretrainConfig& config;
  Communicator& world;
  Coord at;             // this rank's position
  int ranks_here;       // ranks of `world` on this machine
  int64_t start;        // steps done by earlier runs
  int64_t epoch_steps;  // steps of one epoch; 0: unknown
  int64_t parameters;   // number of parameters on this rank
  size_t memory;        // bytes of memory that this rank needs
};

/// The rate that is logged with a step.
using LoggedRate = double StepFigures::*;

/// Creates the observer that writes the additional log lines of a --log-style.
using ObserverMaker = std::unique_ptr<RunObserver> (*)(const ObservedRun&);
/// Registers a style. The style's source file calls this before main(). Returns true.
bool add_log_style(LogStyle, ObserverMaker, LoggedRate = &StepFigures::next_rate);
/// The rate registered with the style; otherwise that of the next step, as in Megatron's log.
LoggedRate logged_rate(LogStyle);
/// The observer of the run's --log-style; null: the style adds no lines.
std::unique_ptr<RunObserver> make_styled_lines(const ObservedRun&);

}  // namespace megalith
