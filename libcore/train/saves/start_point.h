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

/// The saved model that --load names, in any tool's format. --load may be a folder of our checkpoints or one
/// iter_ folder in it, the same of Megatron-LM or one rank's folder, or a Hugging Face folder.
struct StartPoint {
  std::string path;  // of the folder to read
  /// The parameters under our names and, if optimizer_steps is set, Adam's state ("optim.m.NAME", …).
  std::shared_ptr<const TensorFile> tensors;
  /// The options of the run that saved it, as far as they are known. From another tool's checkpoint: those of
  /// the model, and those that determine the order of samples. Null: a release in our format, which has no
  /// options.
  Json args = {};
  std::optional<TrainState> state = {};     // nothing: there are only weights, so training begins at step 0
  std::optional<LrSchedule> schedule = {};  // nothing: none is stored
  std::optional<int64_t> optimizer_steps = {};  // nothing: there is no Adam state
  std::string no_optimizer = {};                // why there is no Adam state, if known
  /// Samples per step of the run that saved it, if that run's progress is counted in steps; 0: its progress
  /// is counted in samples.
  int64_t step_samples = 0;
  /// Why a run with --save must not begin at step 0 from this start point; empty: it may.
  std::string no_fresh_start = {};
  Json loss_scale = {};  // state of a dynamic loss scale; null: there is none
  LossHistory losses = {};
};

/// Fills in the progress, schedule, optimizer steps and loss scale from the state that our checkpoints store
/// as JSON (kStateFile). Error messages begin with `where`. kData.
void take_state(StartPoint&, const Json& state, const std::string& where);

/// Whether --load and --save are the same folder. A run keeps its own checkpoints there and may not have one
/// yet.
bool loads_where_it_saves(const CheckpointConfig&);
/// The names of the iteration folders in `root` ("iter_0000100"), sorted.
std::vector<std::string> iteration_folders_in(const std::string& root);

/// The path to load from. If --load is the folder of --save: the untracked checkpoint in it
/// (CheckpointStore::untracked()), if there is one. If --load is the id of a model on the Hugging Face hub:
/// the local copy of that model. Otherwise --load itself.
std::string load_path(const CheckpointConfig&);

/// What a run trains. kModel: a model, which a fresh start fills with random values. kTuned: a trained model
/// that is fine-tuned; a fresh start begins with its values, and a checkpoint may hold only an adapter.
enum class Trained { kModel, kTuned };

/// Finds what --load names. Returns nothing, for a fresh start, when --load is empty, names an empty or
/// missing folder, or is the folder of --save and holds no checkpoint yet; logs the fresh start. `model`
/// gives the vocabulary's size where Megatron's checkpoint does not. kNoInput with
/// --exit-on-missing-checkpoint, and when a named checkpoint is missing. kData for damage, for a folder of
/// checkpoints without a tracker, and for anything that is not a checkpoint; also, when a model is to be
/// trained, for an adapter, and for another tool's model in the folder of --save.
std::optional<StartPoint> find_start(const CheckpointConfig&, const ModelConfig& model,
                                     Trained trained = Trained::kModel);

/// The options to add to a command so that it resumes from the state saved at `iteration`, such as "--load
/// DIR"; empty: the command resumes as it is.
std::string options_to_resume(const CheckpointConfig&, int64_t iteration);

/// Converts the schedule and the position in the data of `start` to this run's batch size at the same number
/// of steps. The run continues as if those steps had been its own. Does nothing unless the progress of
/// `start` is counted in steps (StartPoint::step_samples) of another size. `epoch`: samples of one pass over
/// the data; 0: unknown. If the decay of `start` spans as many epochs as this run has, it becomes the decay
/// of this run.
void count_in_steps(StartPoint& start, const TrainConfig&, int64_t epoch);

/// The schedule to continue with. kUsage when `ours` differs from the checkpoint's and no option says which
/// of the two applies.
LrSchedule agreed_schedule(const LrSchedule& ours, const StartPoint&, const CheckpointConfig&);

/// The options that --use-checkpoint-args takes from the checkpoint of --load or --checkpoint, and where they
/// are stored. saved_args() returns nothing when there is no checkpoint, and throws kData when the checkpoint
/// stores no options.
struct SavedArgs {
  Json args;
  std::string folder;
  std::string
      tokenizer;  // folder that holds the checkpoint's copy of the tokenizer, directly or below, if any
};
std::optional<SavedArgs> saved_args(const CheckpointConfig&);

/// The tokenizer that the model of --load was trained with, if its files are stored with the model; nothing
/// for a fresh start or without such files. Settings that no file stores (--no-hf-special-tokens, …) come
/// from the options of a checkpoint of ours or, if there are none, from `run`, the run's own tokenizer
/// options. Throws as find_start() does.
std::optional<TokenizerFiles> tokenizer_of_start(const CheckpointConfig&, const TokenizerConfig& run);

}  // namespace megalith
