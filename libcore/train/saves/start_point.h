#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/checkpoint/loss_history.h"
#include "libcore/checkpoint/tensor_file.h"
#include "libcore/config/checkpoint_config.h"
#include "libcore/config/model_config.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/json/json.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/schedules/lr.h"

namespace megalith {

/// What --load names, whoever wrote it: one of our checkpoints (their folder or an iter_ folder), a
/// checkpoint of Megatron-LM (likewise, or one rank's), or a Hugging Face folder.
struct StartPoint {
  std::string path;  // of the folder that is read
  /// The parameters under our names, and with optimizer_steps Adam's state ("optim.m.NAME", …).
  std::shared_ptr<const TensorFile> tensors;
  /// The options of the run as far as they are ours; of other tools' checkpoints the model's, and what orders
  /// the samples. Null: a release of ours without options.
  Json args = {};
  std::optional<TrainState> state = {};         // nothing: weights alone, and training begins at step 0
  std::optional<LrSchedule> schedule = {};      // nothing: it keeps none
  std::optional<int64_t> optimizer_steps = {};  // nothing: there is no state of Adam
  std::string no_optimizer = {};                // why not, where it is known
  /// Samples of a step of the run that saved it, if that run's progress is counted in steps; 0: in samples.
  int64_t step_samples = 0;
  std::string no_fresh_start =
      {};                // why no run that saves to --save may begin at step 0 with it; empty: one may
  Json loss_scale = {};  // state of a dynamic one; null: none
  LossHistory losses = {};
};

/// Takes from the state that a checkpoint of ours keeps as JSON (kStateFile) all but the losses. `where`
/// begins messages. kData.
void take_state(StartPoint&, const Json& state, const std::string& where);

/// Whether --load is --save, where a run keeps its own checkpoints and need not have one yet.
bool loads_where_it_saves(const CheckpointConfig&);
/// What stands in `root` under the name of an iteration's folder ("iter_0000100"), in order.
std::vector<std::string> iteration_folders_in(const std::string& root);

/// What --load names: itself, or the local copy of a model with this id on the Hugging Face hub; not for the
/// folder of --save, which may be new, and where CheckpointStore::untracked() goes first.
std::string load_path(const CheckpointConfig&);

/// What a run trains, and so what a fresh start begins with: a model from random values, or one that is
/// tuned, whose checkpoints may hold an adapter alone.
enum class Trained { kModel, kTuned };

/// Nothing when --load is empty or names a folder that is empty or missing, or the one of --save before its
/// first checkpoint: a fresh start, which the log says. `model` tells the vocabulary where Megatron's
/// checkpoint does not. kNoInput with --exit-on-missing-checkpoint, and where a checkpoint that is named is
/// not there; kData for damage, for a folder of checkpoints whose tracker is missing, for what is no
/// checkpoint, and where a model is to be trained, for an adapter, and for another tool's model that lies in
/// the folder of --save.
std::optional<StartPoint> find_start(const CheckpointConfig&, const ModelConfig& model,
                                     Trained trained = Trained::kModel);

/// What a command has to be given so that it goes on from what its run saved at `iteration`, such as "--load
/// DIR"; empty: nothing, the same command goes on.
std::string options_to_go_on(const CheckpointConfig&, int64_t iteration);

/// Puts what `start` says of the schedule and of the place in the data in terms of this run's batch, with as
/// many steps, where progress is counted in steps (StartPoint::step_samples) and steps have another size now:
/// the run goes on as if those steps had been its own. `epoch`: samples of one time through the data, 0: not
/// known; a decay over the same epochs is over all of this run's steps.
void count_in_steps(StartPoint& start, const TrainConfig&, int64_t epoch);

/// The schedule to go on with: it must be the checkpoint's, unless the options say whose wins. kUsage.
LrSchedule agreed_schedule(const LrSchedule& ours, const StartPoint&, const CheckpointConfig&);

/// The options that --use-checkpoint-args takes from what --load, or --checkpoint, names, and where they
/// stand; nothing when there is no checkpoint. kData when it keeps none.
struct SavedArgs {
  Json args;
  std::string folder;
  std::string tokenizer;  // folder that the checkpoint's copy of the tokenizer stands in, or below, if any
};
std::optional<SavedArgs> saved_args(const CheckpointConfig&);

/// The tokenizer that the model was trained with which --load names, where its files stand with it; nothing
/// for a fresh start and where none lies with it. Of `run`, the run's own, come the settings that no
/// file keeps (--no-hf-special-tokens, …) unless a checkpoint of ours has them. Throws as find_start() does.
std::optional<TokenizerFiles> tokenizer_of_start(const CheckpointConfig&, const TokenizerConfig& run);

}  // namespace megalith
