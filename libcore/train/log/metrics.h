#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "libcore/json/json.h"
#include "libcore/train/log/run_entries.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/log/tensorboard.h"

namespace megalith {

/// Megatron's log line. It covers the steps since the previous line:
///  iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 123.4 | …
/// The loss is the mean over the steps that were not skipped; it is left out if all were skipped. Grad norm
/// and learning rate are those of the last step. We add fields at the end: tokens/s, TFLOP/s of all ranks,
/// with --log-throughput the share of the machines' peak (MFU), and the process's memory.
class TrainLine {
 public:
  struct About {
    int64_t iterations = 0;
    int ranks = 1;
    bool throughput = false;   // also print Megatron's "throughput per GPU" (here per rank) and MFU
    double machine_flops = 0;  // FLOP/s of the machines of all ranks; 0: unknown, no MFU
    LoggedRate rate = &StepFigures::next_rate;
  };
  explicit TrainLine(const About& about) : about_(about) {}
  void add(const StepFigures&);
  std::string text() const;
  void clear();

 private:
  About about_;
  StepFigures last_;
  int64_t steps_ = 0, skipped_ = 0, nan_ = 0, tokens_ = 0;
  double loss_sum_ = 0, seconds_ = 0, flops_ = 0;
};

/// Megatron's line about an evaluation; `where` is "iteration 100", "iteration 100 on validation set" or "…
/// on test set"; `set`: name of the validation set, if there are several.
std::string evaluation_line(std::string_view where, double loss, std::string_view set = {});
/// Our line about the figures of --eval-tasks, in the form of Megatron's lines.
std::string tasks_line(const TasksReport&);
/// The number, padded to seven columns as in Megatron's lines about checkpoints.
std::string padded_iteration(int64_t iteration);
/// exp(loss), at most exp(20) as in Megatron.
double perplexity(double loss);

/// The incomplete JSON line that a killed run left at the end of `text`; empty if there is none.
std::string_view cut_line(std::string_view text);

/// A file of JSON objects, one per line. Appends, so that a resumed run continues the same file; an
/// incomplete last line is removed. Each line is in the file when write() returns. Throws kIo.
class JsonLines {
 public:
  explicit JsonLines(std::string path);
  void write(const Json& object);

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// Where a run's figures go in addition to the log.
struct RunLogOptions {
  std::string tensorboard = {};  // folder; empty: none
  std::string json = {};         // file; empty: none
  int64_t start = 0;             // number of iterations that earlier runs did
  int64_t flush_interval = 1;    // steps after which TensorBoard's file is flushed
  LoggedRate rate = &StepFigures::next_rate;
};

/// Writes the events of a run to the TensorBoard folder and the JSON lines if these are requested.
///
/// JSON lines: the entries of train/log/run_entries.h; a figure that is not finite is null.
/// TensorBoard: Megatron's tags, against the iteration: "lm loss", "learning-rate", "grad-norm",
/// "loss-scale", "batch-size", "iteration-time" (s), "lm loss validation", "lm loss validation ppl", "lm loss
/// test", …; and our own "tokens-per-second", "tflops" and the text "sample".
class RunLog final : public RunObserver {
 public:
  explicit RunLog(const RunLogOptions&);
  void start(const StartEntry&);
  void step(const StepReport&) override;
  void evaluation(const EvaluationReport&) override;
  void tasks(const TasksReport&) override;
  void sample(const SampleReport&) override;
  void saved(const SaveReport&) override;
  void end(const EndReport&) override;

 private:
  template <class Entry>
  void write(const char* type, const Entry&);
  void flush();

  int64_t flush_interval_;
  double StepFigures::*rate_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<JsonLines> lines_;
};

}  // namespace megalith
