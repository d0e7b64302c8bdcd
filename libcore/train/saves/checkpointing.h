#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/json/json.h"
#include "libcore/train/schedules/lr.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

/// The parts of an evaluation in their order; each includes those after it.
enum class EvaluationPart { kAll = 1, kTasks = 2 };

/// The progress of a run between two steps. Together with the parameters and the optimizer's moments this is
/// all that a resumed run needs: sample order and dropout masks follow from the seed and these numbers.
struct TrainState {
  int64_t iteration = 0;       // steps done
  int64_t consumed_train = 0;  // samples read by training steps
  int64_t consumed_valid = 0;  // samples read by evaluations on the validation set
  /// Samples of the steps that were not skipped. The learning rate is a function of this number, so a skipped
  /// step does not change the rate.
  int64_t schedule_samples = 0;
  int64_t skipped = 0;                   // steps without update
  std::optional<double> best_loss = {};  // with Tuning: the best figure so far, see note_figure()
  int64_t best_iteration = 0;            // iteration of best_loss
  int64_t worse_evaluations = 0;         // evaluations since best_iteration, none of which was better
  /// What a signal left undone of the evaluation after the last step; a run that resumes does it first.
  std::optional<EvaluationPart> evaluation_left = {};

  template <class V>
  void fields(V&& v) {
    v("iteration", iteration);
    v("consumed_train_samples", consumed_train);
    v("consumed_valid_samples", consumed_valid);
    v("schedule_samples", schedule_samples);
    v("skipped_iterations", skipped);
    v("evaluation_left", evaluation_left);
    v("best_loss", best_loss);
    if (!best_loss) return;
    v("best_iteration", best_iteration);
    v("worse_evaluations", worse_evaluations);
  }
};

/// The greatest number of steps and samples that a checkpoint may name: a double holds all up to it.
inline constexpr int64_t kMostSamples = int64_t{1} << 53;
/// Throws kData for a number of steps or samples that no run could have reached; `what` begins the message.
void check_count(int64_t count, const std::string& what);
/// The same for each number of `state`, with `where` in front of its name.
void check_state(const TrainState& state, const std::string& where);

/// What is saved besides tensors.
struct CheckpointExtras {
  Json args;  // all options of the run
  LrSchedule schedule;
  std::map<std::string, std::string> tokenizer_files = {};  // maps the name of each file to its contents
  bool optimizer = true;                                    // also save the optimizer's state
  LossHistory losses = {};
};

/// The tokenizer's own files under their names in a checkpoint: vocab.json and merges.txt, or tokenizer.json
/// and the files next to it, or the model file under its own name. kNoInput.
std::map<std::string, std::string> tokenizer_files(const TokenizerConfig&);

/// Creates a writer for a checkpoint of the run's state and puts this rank's share into it.
std::unique_ptr<CheckpointWriter> checkpoint_of(const std::string& root, const TrainState&, Trainer&,
                                                const CheckpointExtras&);

}  // namespace megalith
