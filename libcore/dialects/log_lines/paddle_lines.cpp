// --log-style paddle: the lines of PaddleNLP's Trainer, every --log-interval steps and at each evaluation:
//   [2026-11-22 10:00:00,123] [    INFO] - loss: 9.12345678, learning_rate: 1e-05, global_step: 20,
//   interval_runtime: 2.1, interval_samples_per_second: 7.6, interval_steps_per_second: 0.5, epoch: 0.02
//   [...] - eval_loss: 9.1, eval_ppl: 8955.3, eval_runtime: 1.2, eval_samples_per_second: ..., ...
#include <chrono>
#include <cstdio>
#include <ctime>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/train/log/metrics.h"
#include "libcore/train/log/run_observer.h"

namespace megalith {
namespace {

/// The beginning of a line from Paddle's logger.
std::string line_head() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "[%Y-%m-%d %H:%M:%S,", &local);
  std::snprintf(text + size, sizeof text - size, "%03d] [    INFO] - ", static_cast<int>(ms));
  return text;
}

std::string four_digits(double value) {
  return format_fixed(value, 4);
}

std::string rate(double count, double seconds) {
  return four_digits(seconds > 0 ? count / seconds : 0);
}

class PaddleLines final : public RunObserver {
 public:
  explicit PaddleLines(const ObservedRun& run)
      : log_interval_(run.config.train.log_interval), epoch_steps_(run.epoch_steps) {}

  void step(const StepReport& report) override {
    const StepFigures& step = report.figures;
    loss_ += step.loss;
    seconds_ += step.seconds;
    samples_ += step.samples;
    ++steps_;
    if (step.iteration % log_interval_ != 0) return;
    const auto steps = static_cast<double>(steps_);
    log(line_head(), "loss: ", format_fixed(loss_ / steps, 8),
        ", learning_rate: ", format_double(step.next_rate), ", global_step: ", step.iteration,
        ", interval_runtime: ", four_digits(seconds_),
        ", interval_samples_per_second: ", rate(static_cast<double>(samples_), seconds_),
        ", interval_steps_per_second: ", rate(steps, seconds_), epoch(step.iteration));
    loss_ = seconds_ = 0;
    steps_ = samples_ = 0;
  }

  void evaluation(const EvaluationReport& report) override {
    if (report.test) return;
    const auto batches = static_cast<double>(report.batches);
    const std::string eval = report.set.empty() ? "eval_" : concat("eval_", report.set, "_");
    log(line_head(), eval, "loss: ", format_fixed(report.loss, 8),
        report.accuracy ? concat(", ", eval, "accuracy: ", format_fixed(*report.accuracy, 8)) : std::string(),
        ", ", eval, "ppl: ", four_digits(perplexity(report.loss)), ", ", eval,
        "runtime: ", four_digits(report.seconds), ", ", eval,
        "samples_per_second: ", rate(static_cast<double>(report.samples), report.seconds), ", ", eval,
        "steps_per_second: ", rate(batches, report.seconds), epoch(report.iteration));
  }

 private:
  std::string epoch(int64_t iteration) const {
    if (epoch_steps_ == 0) return {};
    return ", epoch: " + four_digits(static_cast<double>(iteration) / static_cast<double>(epoch_steps_));
  }

  int64_t log_interval_, epoch_steps_;
  double loss_ = 0, seconds_ = 0;  // sums over the steps since the last line
  int64_t steps_ = 0, samples_ = 0;
};

[[maybe_unused]] const bool kAdded =
    add_log_style(LogStyle::kPaddle, [](const ObservedRun& run) -> std::unique_ptr<RunObserver> {
      return std::make_unique<PaddleLines>(run);
    });

}  // namespace
}  // namespace megalith
