#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "libcore/json/json.h"
#include "libcore/train/log/tensorboard.h"

namespace megalith {

/// The figures of one optimizer step.
struct StepFigures {
  int64_t iteration = 0;         // from 1
  int64_t consumed_samples = 0;  // after this step
  double loss = 0;               // mean over the global batch's tokens, nats
  double learning_rate = 0;      // after this step, as Megatron logs it: the rate of the next step
  double grad_norm = 0;          // before clipping; NaN or infinite if the step was skipped
  double loss_scale = 1;         // after this step
  double seconds = 0;
  int64_t samples = 0;  // of this step
  int64_t tokens = 0;
  int64_t seen_tokens = 0;   // of all steps up to this one
  double flops = 0;          // of the model, over all ranks (see model_flops), in proportion to the tokens
  uint64_t peak_memory = 0;  // the most bytes that this process has held
  bool skipped = false;      // no update: loss or gradient was not finite
};

/// Megatron's line about the steps since the last line:
///  iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 123.4 | …
/// The loss is the mean over the steps that were not skipped (left out if all were); grad norm and learning
/// rate are the last step's. Our additions follow at the end: tokens/s, TFLOP/s of all ranks, with
/// --log-throughput the share of the machines' peak (MFU), and the process's memory.
class TrainLine {
 public:
  struct About {
    int64_t iterations = 0;
    int ranks = 1;
    bool throughput = false;   // Megatron's "throughput per GPU", for each rank, and MFU
    double machine_flops = 0;  // FLOP/s of the machines of all ranks; 0: unknown, no MFU
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
/// on test set".
std::string evaluation_line(std::string_view where, double loss);
/// exp(loss), at most exp(20) as in Megatron.
double perplexity(double loss);

/// The incomplete line of ours that a killed run left at the end of `text`; empty if there is none.
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
  int64_t start = 0;             // iterations already done
};

/// One call for each event of a run; writes it to the TensorBoard folder and the JSON lines if these are
/// requested.
///
/// JSON lines: {"type": "start", …} with the members given to start(), then
///   {"type": "train", "iteration", "consumed_samples", "tokens", "loss", "lr", "grad_norm", "loss_scale",
///   "ms", "tokens_per_s", "tflops", "memory_bytes", "batch", "skipped"},
///   {"type": "valid" | "test", "iteration", "loss", "ppl"}, {"type": "sample", "iteration", "prompt",
///   "text"},
///   {"type": "save", "iteration", "path"}, {"type": "end", "iteration", "reason"}.
/// "time" (seconds since 1970) is in every line; a figure that is not finite is null.
/// TensorBoard: Megatron's tags, against the iteration: "lm loss", "learning-rate", "grad-norm",
/// "loss-scale", "batch-size", "iteration-time" (s), "lm loss validation", "lm loss validation ppl", "lm loss
/// test", …; "tokens-per-second", "tflops" and the text "sample".
class RunLog {
 public:
  explicit RunLog(const RunLogOptions&);
  void start(Json::Object about);
  void step(const StepFigures&);
  void evaluation(std::string_view set, int64_t iteration, double loss);  // set: "valid" or "test"
  void sample(int64_t iteration, std::string_view prompt, std::string_view text);
  void saved(int64_t iteration, const std::string& path);
  void end(int64_t iteration, std::string_view reason);
  void flush();

 private:
  void write(const char* type, Json::Object members);

  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<JsonLines> lines_;
};

}  // namespace megalith
