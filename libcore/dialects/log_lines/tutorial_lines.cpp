// --log-style ddp-tutorial: the lines of the PyTorch DDP tutorial, with batches counted from 0 in each epoch
// and steps from 0 in the run. Every rank prints lines for its own samples, even if muted:
//   [GPU1] Epoch 1 (Batch 000003): Train loss 9.123
//   [GPU1] Epoch 1 finished, checkpoint: 000001
// and rank 0: Epoch 1 (Step 000000): Train loss 9.131, Val loss 9.140
//   =====
// The last line ends an epoch. Its checkpoint is the number in the name of the pair that was saved then; a
// run that saves no pair there names its last step.
#include <algorithm>
#include <cstdio>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/parallel/exchange.h"
#include "libcore/train/log/run_observer.h"

namespace megalith {
namespace {

std::string loss_text(double loss) {
  return format_fixed(loss, 3);
}

std::string six_digits(int64_t number) {
  char text[32];
  std::snprintf(text, sizeof text, "%06lld", static_cast<long long>(number));
  return text;
}

class TutorialLines final : public RunObserver {
 public:
  explicit TutorialLines(const ObservedRun& run)
      : world_(run.world), at_(run.at), epoch_steps_(run.epoch_steps) {}

  ObserverNeeds needs() const override { return {.own_loss = true, .train_loss = true}; }

  void step(const StepReport& report) override {
    const double loss = loss_of_my_samples(report.own_loss);
    const int64_t iteration = report.figures.iteration, number = iteration - 1, epoch = epoch_of(number);
    const std::string head = concat("[GPU", world_.rank(), "] Epoch ", epoch + 1);
    const bool muted = mute_this_thread(false);
    log(head, " (Batch ", six_digits(number - epoch * epoch_steps_), "): Train loss ", loss_text(loss));
    mute_this_thread(muted);
  }

  void saved(const SaveReport& report) override {
    if (report.number) pair_ = {report.iteration, *report.number};
  }

  void step_done(int64_t iteration) override {
    if (epoch_steps_ == 0 || iteration % epoch_steps_ != 0) return;
    log("=====");
    const int64_t checkpoint = pair_.iteration == iteration ? pair_.number : iteration - 1;
    const bool muted = mute_this_thread(false);
    log("[GPU", world_.rank(), "] Epoch ", iteration / epoch_steps_,
        " finished, checkpoint: ", six_digits(checkpoint));
    mute_this_thread(muted);
  }

  void evaluation(const EvaluationReport& report) override {
    if (report.test) return;
    const int64_t number = std::max<int64_t>(report.iteration - 1, 0);
    const std::string train =
        report.train_loss ? concat("Train loss ", loss_text(*report.train_loss), ", ") : std::string();
    log("Epoch ", epoch_of(number) + 1, " (Step ", six_digits(number), "): ", train, "Val loss ",
        report.set.empty() ? std::string() : concat("(", report.set, ") "), loss_text(report.loss));
  }

 private:
  // If the length of an epoch is unknown, all steps belong to the first one.
  int64_t epoch_of(int64_t step) const { return epoch_steps_ > 0 ? step / epoch_steps_ : 0; }

  // The loss of the samples that this rank reads. Only ranks of the last stage know a loss. Of the tensor
  // ranks, which all know the same loss, one counts; each context rank knows the loss of its part of the
  // sequence.
  double loss_of_my_samples(double own_loss) const {
    struct Part {
      int data;
      double loss;
    };
    double sum = 0;
    for (const Part& part : exchange_values(world_, Part{at_.data, at_.tensor == 0 ? own_loss : 0}))
      if (part.data == at_.data) sum += part.loss;
    return sum;
  }

  Communicator& world_;
  Coord at_;
  int64_t epoch_steps_;
  struct {
    int64_t iteration = 0, number = 0;
  } pair_;  // the last pair that was saved
};

// As in the tutorial, logs the learning rate that the step used.
[[maybe_unused]] const bool kAdded = add_log_style(
    LogStyle::kDdpTutorial,
    [](const ObservedRun& run) -> std::unique_ptr<RunObserver> {
      return std::make_unique<TutorialLines>(run);
    },
    &StepFigures::rate);

}  // namespace
}  // namespace megalith
