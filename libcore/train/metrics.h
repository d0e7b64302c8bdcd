#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "libcore/json/json.h"
#include "libcore/train/tensorboard.h"

namespace megalith {

/// The figures of one optimizer step.
struct StepFigures {
  int64_t iteration = 0;         // from 1
  int64_t consumed_samples = 0;  // after this step
  double loss = 0;               // mean over the global batch's tokens, nats
  double learning_rate = 0;      // after this step, as Megatron logs it: what the next step will use
  double grad_norm = 0;          // before clipping; of a skipped step NaN or infinite
  double loss_scale = 1;         // after this step
  double seconds = 0;
  int64_t tokens = 0;
  bool skipped = false;  // no update: loss or gradient was not finite
};

/// Megatron's line about the steps since the last line:
///  iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 123.4 | …
/// The loss is the mean over the steps that were not skipped (left out when there was none); grad norm and
/// learning rate are the last step's. Ours alone: tokens/s at the end.
class TrainLine {
 public:
  TrainLine(int64_t iterations, int64_t global_batch)
      : iterations_(iterations), global_batch_(global_batch) {}
  void add(const StepFigures&);
  std::string text() const;
  void clear();

 private:
  int64_t iterations_, global_batch_;
  StepFigures last_;
  int64_t steps_ = 0, skipped_ = 0, nan_ = 0, tokens_ = 0;
  double loss_sum_ = 0, seconds_ = 0;
};

/// Megatron's line about an evaluation; `where` is "iteration 100", "iteration 100 on validation set" or "…
/// on test set".
std::string evaluation_line(std::string_view where, double loss);
/// exp(loss), with Megatron's bound of exp(20).
double perplexity(double loss);

/// A file of JSON objects, one a line, appended to what is there, so that a resumed run goes on in the same
/// file. Each line is in the file when write() returns. Throws kIo.
class JsonLines {
 public:
  explicit JsonLines(std::string path);
  void write(const Json& object);

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

/// Where a run's figures go besides the log.
struct RunLogOptions {
  std::string tensorboard = {};  // folder; empty: none
  std::string json = {};         // file; empty: none
  int64_t start = 0;             // iterations already done
  int64_t global_batch = 0;
};

/// One call for each event of a run; writes it to the TensorBoard folder and the JSON lines, as far as they
/// are asked for.
///
/// JSON lines: {"type": "start", …} with whatever start() is given, then
///   {"type": "train", "iteration", "consumed_samples", "loss", "lr", "grad_norm", "loss_scale", "ms",
///   "tokens_per_s", "skipped"},
///   {"type": "valid" | "test", "iteration", "loss", "ppl"}, {"type": "sample", "iteration", "prompt",
///   "text"},
///   {"type": "save", "iteration", "path"}, {"type": "end", "iteration", "reason"}.
/// "time" (seconds since 1970) is in every line; a figure that is not finite is null.
/// TensorBoard: Megatron's tags, against the iteration: "lm loss", "learning-rate", "grad-norm",
/// "loss-scale", "batch-size", "iteration-time" (s), "lm loss validation", "lm loss validation ppl", "lm loss
/// test", …; "tokens-per-second" and the text "sample".
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

  int64_t global_batch_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<JsonLines> lines_;
};

}  // namespace megalith
