#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/json/json.h"
#include "libcore/train/lr.h"
#include "libcore/train/trainer.h"

namespace megalith {

/// Where a run stands between two steps. With the parameters and the optimizer's moments this is all that a
/// resumed run needs: sample order and dropout masks follow from the seed and these numbers.
struct TrainState {
  int64_t iteration = 0;         // steps done
  int64_t consumed_train = 0;    // samples read by training steps
  int64_t consumed_valid = 0;    // samples read by evaluations on the validation set
  int64_t schedule_samples = 0;  // samples of the steps that were not skipped: the learning rate's clock
  int64_t skipped = 0;           // steps without update
  std::optional<double> best_loss = {};  // with Tuning: the lowest of the evaluations so far
  int64_t best_iteration = 0;            // and where it was
  int64_t worse_evaluations = 0;         // since then

  Json to_json() const;
  static TrainState from_json(const Json&);  // kData
};

/// What is saved besides tensors.
struct CheckpointExtras {
  Json args;  // every option of the run
  LrSchedule schedule;
  std::map<std::string, std::string> tokenizer_files = {};  // name to contents
  bool optimizer = true;                                    // save its state too
  LossHistory losses = {};
};

/// The tokenizer's own files by the names that they have in a checkpoint: vocab.json and merges.txt, or
/// tokenizer.json and what lies beside it, or the model's own name. kNoInput.
std::map<std::string, std::string> tokenizer_files(const TokenizerConfig&);

/// Writes ROOT/iter_NNNNNNN and then the tracker, atomically. Returns the folder's path.
std::string save_checkpoint(const std::string& root, const TrainState&, Trainer&, const CheckpointExtras&);

/// Reads the optimizer's moments, masters and step count. kData when the checkpoint has none.
void load_optimizer(const CheckpointReader&, Trainer&);

/// The options of the run that wrote the latest checkpoint below `root`, and that checkpoint's folder;
/// nothing when there is none. kData when the checkpoint keeps no options.
struct SavedArgs {
  Json args;
  std::string folder;
};
std::optional<SavedArgs> saved_args(const std::string& root);

/// The schedule that a checkpoint was saved with; kData.
LrSchedule saved_schedule(const CheckpointReader&);
TrainState saved_state(const CheckpointReader&);

}  // namespace megalith
