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
  double learning_rate = 0;      // after this step, as Megatron logs it: what the next step will use
  double grad_norm = 0;          // before clipping; of a skipped step NaN or infinite
  double loss_scale = 1;         // after this step
  double seconds = 0;
  int64_t samples = 0;  // of this step
  int64_t tokens = 0;
  int64_t seen_tokens = 0;  // of all steps up to this one
  double flops = 0;  // of the model, over all ranks (see model_flops); of short samples as of long ones
  uint64_t peak_memory = 0;  // bytes that this process has held at most
  bool skipped = false;      // no update: loss or gradient was not finite
};

/// Megatron's line about the steps since the last line:
///  iteration       10/     100 | consumed samples:          160 | elapsed time per iteration (ms): 123.4 | …
/// The loss is the mean over the steps that were not skipped (left out when there was none); grad norm and
/// learning rate are the last step's. Ours alone, at the end: tokens/s, TFLOP/s of all ranks, with
/// --log-throughput the share of what the machine can do (MFU), and the process's memory.
class TrainLine {
 public:
  struct About {
    int64_t iterations = 0;
    int ranks = 1;
    bool throughput = false;   // Megatron's "throughput per GPU", for each rank, and MFU
    double machine_flops = 0;  // FLOP/s of the machines of all ranks; 0: not known, no MFU
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
/// exp(loss), with Megatron's bound of exp(20).
double perplexity(double loss);

/// The beginning of one of our lines that a run which was killed left at the end of `text`; empty: there is
/// none.
std::string_view cut_line(std::string_view text);

/// A file of JSON objects, one a line, appended to what is there, so that a resumed run goes on in the same
/// file; a cut line at its end goes. Each line is in the file when write() returns. Throws kIo.
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
};

/// One call for each event of a run; writes it to the TensorBoard folder and the JSON lines, as far as they
/// are asked for.
///
/// JSON lines: {"type": "start", …} with whatever start() is given, then
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
