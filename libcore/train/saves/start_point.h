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

/// The saved model that --load names, in any tool's format. --load may be a folder with our or Megatron-LM's
/// checkpoints, one iter_ folder in it, the folder of one Megatron-LM rank, or a Hugging Face folder.
struct StartPoint {
  std::string path;  // folder from which the model is read
  /// The parameters under our names and, if optimizer_steps is set, Adam's state ("optim.m.NAME", …).
  std::shared_ptr<const TensorFile> tensors;
  /// The options of the run that saved the model, as far as they are known. From another tool's checkpoint,
  /// only the options of the model and those that determine the order of samples. Null for a release in our
  /// format, which stores no options.
  Json args = {};
  std::string args_place = {};              // file and place of `args`, for messages
  std::optional<TrainState> state = {};     // nothing: only weights are stored, so training begins at step 0
  std::optional<LrSchedule> schedule = {};  // nothing: no schedule is stored
  std::optional<int64_t> optimizer_steps = {};  // nothing: there is no Adam state
  std::string no_optimizer = {};                // why there is no Adam state, if known
  /// If the saved run's progress is counted in steps: its samples per step. 0: its progress is counted in
  /// samples.
  int64_t step_samples = 0;
  /// The number of the next save of a run that resumes; nothing if the format does not count saves.
  std::optional<int64_t> next_save = {};
  /// Why a run with --save must not begin at step 0 from this start point; empty if it may.
  std::string no_fresh_start = {};
  Json loss_scale = {};  // state of a dynamic loss scale; null: there is none
  LossHistory losses = {};
};

/// Fills in the progress, schedule, optimizer steps and loss scale from the state that our checkpoints store
/// as JSON (kStateFile). Error messages begin with `where`. kData.
void take_state(StartPoint&, const Json& state, const std::string& where);

/// Whether --load and --save are the same folder. In this case the folder need not hold a checkpoint yet.
bool loads_where_it_saves(const CheckpointConfig&);
/// The names of the iteration folders in `root` ("iter_0000100"), sorted.
std::vector<std::string> iteration_folders_in(const std::string& root);

/// With --ckpt-step, replaces --load by the checkpoint of that step below it. kUsage, with the steps that
/// exist, if there is none.
void take_step(CheckpointConfig&);

/// The path to load from: the untracked checkpoint (CheckpointStore::untracked()) if --load is the folder of
/// --save and holds one; the local copy of the model if --load is a model's id on the Hugging Face hub;
/// otherwise --load itself.
std::string load_path(const CheckpointConfig&);

/// What a run trains. kModel: a model, whose values are random if the run starts from scratch. kTuned: a
/// trained model, which is fine-tuned from its own values; a checkpoint may then hold only an adapter.
enum class Trained { kModel, kTuned };

/// Finds what --load names. Returns nothing, for a fresh start, when --load is empty, names an empty or
/// missing folder, or is the folder of --save and holds no checkpoint yet; logs the fresh start. `model`
/// gives the vocabulary's size where Megatron's checkpoint does not. kNoInput with
/// --exit-on-missing-checkpoint, and when a named checkpoint is missing. kData for damage, for a folder of
/// checkpoints without a tracker, and for anything that is not a checkpoint; also, when a model is to be
/// trained, for an adapter, and for another tool's model in the folder of --save.
std::optional<StartPoint> find_start(const CheckpointConfig&, const ModelConfig& model,
                                     Trained trained = Trained::kModel);

/// What a command needs to resume from a saved state.
struct OptionsToResume {
  std::vector<std::string> words = {};  // to add, such as "--load", "DIR"; empty: it resumes as it is
  std::string in_place_of = {};         // an option that must go, such as "--checkpoint 5"; empty: none

  std::string text() const;  // "--load DIR in place of --checkpoint 5"
};
/// What a command needs to resume from the state saved at `iteration`.
OptionsToResume options_to_resume(const CheckpointConfig&, int64_t iteration);

/// Converts the schedule and the position in the data of `start` from its batch size to this run's. The
/// number of steps stays the same: the run continues as if it had done these steps itself. Changes something
/// only if the progress of `start` is counted in steps (StartPoint::step_samples) and its steps have another
/// size. A start without a schedule continues with this run's. `epoch`: samples of one pass over the data; 0:
/// unknown. If the decay of `start` spans as many epochs as this run has, this run's decay replaces it.
void count_in_steps(StartPoint& start, const TrainConfig&, int64_t epoch);

/// The schedule to continue with. kUsage when `ours` differs from the checkpoint's and no option says which
/// of the two applies; also for a WSD whose annealing phase neither of them gives a length.
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
