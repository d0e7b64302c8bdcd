#include "libcore/dialects/log_lines/log_style.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <vector>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/parallel/exchange.h"

namespace megalith {
namespace {

constexpr int kLossDigits = 3;

std::string six_digits(int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%06lld", static_cast<long long>(number));
  return text;
}

/// The beginning of a line from Paddle's logger.
std::string paddle_head() {
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

std::string rate(double count, double seconds) {
  constexpr int kDigits = 4;
  return format_fixed(seconds > 0 ? count / seconds : 0, kDigits);
}

}  // namespace

StyledLog::StyledLog(const StyledRun& run, Communicator& world, const Coord& at)
    : run_(run), world_(world), at_(at) {}

void StyledLog::step(const StepFigures& step, double own_loss) {
  if (run_.style == LogStyle::kDdpTutorial) tutorial_step(step, own_loss);
  if (run_.style == LogStyle::kPaddle) paddle_step(step);
}

// The ranks of the last stage know the loss. Tensor ranks all know the same loss, so one of them counts; each
// context rank knows it for its part of the sequence.
double StyledLog::loss_of_my_samples(double own_loss) const {
  struct Part {
    int data;
    double loss;
  };
  double sum = 0;
  for (const Part& part : exchange_values(world_, Part{at_.data, at_.tensor == 0 ? own_loss : 0}))
    if (part.data == at_.data) sum += part.loss;
  return sum;
}

void StyledLog::tutorial_step(const StepFigures& step, double own_loss) {
  const double loss = loss_of_my_samples(own_loss);
  const int64_t number = step.iteration - 1, epoch = epoch_of(number);
  const std::string head = concat("[GPU", world_.rank(), "] Epoch ", epoch + 1);
  const bool muted = mute_this_thread(false);
  log(head, " (Batch ", six_digits(number - epoch * run_.epoch_steps), "): Train loss ",
      format_fixed(loss, kLossDigits));
  if (run_.epoch_steps > 0 && step.iteration % run_.epoch_steps == 0)
    log(head, " finished, checkpoint: ", six_digits(number));
  mute_this_thread(muted);
}

std::string StyledLog::paddle_epoch(int64_t iteration) const {
  constexpr int kDigits = 4;
  if (run_.epoch_steps == 0) return {};
  return ", epoch: " +
         format_fixed(static_cast<double>(iteration) / static_cast<double>(run_.epoch_steps), kDigits);
}

void StyledLog::paddle_step(const StepFigures& step) {
  loss_ += step.loss;
  seconds_ += step.seconds;
  ++steps_;
  if (step.iteration % run_.log_interval != 0) return;
  const auto steps = static_cast<double>(steps_);
  log(paddle_head(), "loss: ", format_fixed(loss_ / steps, 8),
      ", learning_rate: ", format_double(step.learning_rate), ", global_step: ", step.iteration,
      ", interval_runtime: ", format_fixed(seconds_, 4),
      ", interval_samples_per_second: ", rate(steps * static_cast<double>(run_.global_batch), seconds_),
      ", interval_steps_per_second: ", rate(steps, seconds_), paddle_epoch(step.iteration));
  loss_ = seconds_ = 0;
  steps_ = 0;
}

void StyledLog::evaluation(const StyledEvaluation& e) {
  if (run_.style == LogStyle::kDdpTutorial) {
    const int64_t number = std::max<int64_t>(e.iteration - 1, 0);
    const std::string train =
        e.train_loss ? concat("Train loss ", format_fixed(*e.train_loss, kLossDigits), ", ") : std::string();
    log("Epoch ", epoch_of(number) + 1, " (Step ", six_digits(number), "): ", train, "Val loss ",
        format_fixed(e.valid_loss, kLossDigits));
  }
  if (run_.style == LogStyle::kPaddle) {
    const auto batches = static_cast<double>(e.batches);
    log(paddle_head(), "eval_loss: ", format_fixed(e.valid_loss, 8),
        ", eval_ppl: ", format_fixed(perplexity(e.valid_loss), 4),
        ", eval_runtime: ", format_fixed(e.seconds, 4),
        ", eval_samples_per_second: ", rate(batches * static_cast<double>(run_.global_batch), e.seconds),
        ", eval_steps_per_second: ", rate(batches, e.seconds), paddle_epoch(e.iteration));
  }
}

}  // namespace megalith
