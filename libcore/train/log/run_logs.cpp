#include "libcore/train/log/run_logs.h"

#include <optional>
#include <utility>

#include "libcore/base/log.h"
#include "libcore/base/process.h"
#include "libcore/base/shell_word.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/train/log/metrics.h"
#include "libcore/train/log/report.h"
#include "libcore/train/log/straggler.h"

namespace megalith {
namespace {

/// Log lines about events between steps.
class EventLines final : public RunObserver {
 public:
  void evaluation(const EvaluationReport& report) override {
    log(evaluation_line(report.where, report.loss, report.set),
        report.accuracy ? concat(" accuracy: ", format_fixed(*report.accuracy, 6), " |") : std::string());
  }
  void tasks(const TasksReport& report) override { log(tasks_line(report)); }
  void sample(const SampleReport& report) override {
    log("Generated Sample Text: ", join(split(report.text, '\n'), "\n  "));
  }
  void saved(const SaveReport& report) override {
    log("  successfully saved checkpoint from iteration ", padded_iteration(report.iteration), " to ",
        printable(report.path));
  }
};

/// A log line every --log-interval steps, and a second one with --log-straggler.
class StepLines final : public RunObserver {
 public:
  explicit StepLines(const ObservedRun& run)
      : world_(run.world),
        train_(run.config.train),
        line_({.iterations = *train_.iters,
               .ranks = world_.size(),
               .throughput = train_.log_throughput,
               .machine_flops = train_.machine_flops * world_.size() / run.ranks_here,
               .rate = logged_rate(train_.log_style)}) {}

  void step(const StepReport& report) override {
    line_.add(report.figures);
    stragglers_.add(report.stage_seconds);
    if (report.figures.iteration % train_.log_interval != 0) return;
    log(" [", time_now(), "]", line_.text());
    line_.clear();
    if (train_.log_straggler) log(stragglers_.text(world_));
  }

 private:
  Communicator& world_;
  const TrainConfig& train_;
  TrainLine line_;
  StragglerReport stragglers_;
};

class ProgressLine final : public RunObserver {
 public:
  explicit ProgressLine(const ObservedRun& run)
      : progress_(std::in_place, "training", *run.config.train.iters, "steps", run.start) {}

  void step(const StepReport& report) override {
    progress_->advance_to(report.figures.iteration, concat("loss ", format_fixed(report.figures.loss, 3)));
  }
  void end(const EndReport&) override { progress_.reset(); }

 private:
  std::optional<Progress> progress_;
};

/// Writes the report page from the figures of a run that has ended, and keeps the outputs locked until then.
class ReportPage final : public RunObserver {
 public:
  ReportPage(std::unique_ptr<RunOutputs> outputs, std::string path)
      : outputs_(std::move(outputs)), path_(std::move(path)) {}

  void end(const EndReport& end) override {
    if (!end.lost && !path_.empty()) write_report(outputs_->metrics(), path_);
  }

 private:
  std::unique_ptr<RunOutputs> outputs_;
  std::string path_;
};

std::string own_command() {
  std::string out;
  for (const std::string& word : own_words()) out += (out.empty() ? "" : " ") + shell_word(word);
  return out;
}

/// Says that the report leaves out what its file holds of other runs.
void tell_earlier_runs(const RunOutputs& outputs) {
  const auto runs = static_cast<int64_t>(outputs.earlier_runs());
  if (runs > 0)
    log(printable(outputs.metrics()), " keeps the figures of ", format_count(runs), " earlier ",
        runs == 1 ? "run" : "runs", "; the report shows this run, and \"megalith report ",
        shell_word(outputs.metrics()), "\" shows all");
}

std::unique_ptr<RunLog> begin_run_log(const ObservedRun& run, const std::string& figures) {
  auto run_log = std::make_unique<RunLog>(RunLogOptions{.tensorboard = run.config.train.tensorboard,
                                                        .json = figures,
                                                        .start = run.start,
                                                        .flush_interval = run.config.train.log_interval,
                                                        .rate = logged_rate(run.config.train.log_style)});
  run_log->start({.iteration = run.start,
                  .iterations = *run.config.train.iters,
                  .parameters = run.parameters,
                  .memory_bytes = static_cast<int64_t>(run.memory),
                  .args = to_json(run.config),
                  .command = own_command()});
  return run_log;
}

}  // namespace

// The order of the observers determines the order of their log lines: the line of --log-style comes before
// Megatron's line about a step, but after Megatron's line about an evaluation.
void add_run_logs(RunObservers& observers, const ObservedRun& run, std::unique_ptr<RunOutputs> outputs) {
  observers.add(std::make_unique<EventLines>());
  if (outputs && run.start == 0) tell_earlier_runs(*outputs);
  if (outputs) observers.add(begin_run_log(run, outputs->metrics()));
  observers.add(make_styled_lines(run));
  observers.add(std::make_unique<StepLines>(run));
  if (!run.config.train.eval_only) observers.add(std::make_unique<ProgressLine>(run));
  if (outputs) observers.add(std::make_unique<ReportPage>(std::move(outputs), run.config.train.report));
}

}  // namespace megalith
