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

/// What --load names, in any tool's format: one of our checkpoints (their folder or an iter_ folder), a
/// checkpoint of Megatron-LM (likewise, or one rank's), or a Hugging Face folder.
struct StartPoint {
  std::string path;  // of the folder to read
  /// The parameters under our names, and with optimizer_steps Adam's state ("optim.m.NAME", …).
  std::shared_ptr<const TensorFile> tensors;
  /// The run's options, as far as we have them; from another tool's checkpoint the model's, and what orders
  /// the samples. Null: a release in our format without options.
  Json args = {};
  std::optional<TrainState> state = {};         // nothing: only weights, and training begins at step 0
  std::optional<LrSchedule> schedule = {};      // nothing: it stores none
  std::optional<int64_t> optimizer_steps = {};  // nothing: there is no Adam state
  std::string no_optimizer = {};                // why not, if known
  /// Samples per step of the run that saved it, if that run's progress is counted in steps; 0: in samples.
  int64_t step_samples = 0;
  /// Why a run with --save must not begin at step 0 from it; empty: it may.
  std::string no_fresh_start = {};
  Json loss_scale = {};  // of a dynamic loss scale; null: none
  LossHistory losses = {};
};

/// Takes everything except the losses from the state that our checkpoints store as JSON (kStateFile). `where`
/// begins messages. kData.
void take_state(StartPoint&, const Json& state, const std::string& where);

/// Whether --load is --save, where a run keeps its own checkpoints and may not have one yet.
bool loads_where_it_saves(const CheckpointConfig&);
/// Entries of `root` with names of iteration folders ("iter_0000100"), sorted.
std::vector<std::string> iteration_folders_in(const std::string& root);

/// The path that --load names: itself, or the local copy of the model with this id on the Hugging Face hub.
/// For the folder of --save, which may be new, an untracked checkpoint in it (CheckpointStore::untracked())
/// comes first.
std::string load_path(const CheckpointConfig&);

/// What a run trains, and so what a fresh start begins with: a model with random values, or one being
/// fine-tuned, whose checkpoints may hold only an adapter.
enum class Trained { kModel, kTuned };

/// Nothing, a fresh start, which is logged, when --load is empty, names an empty or missing folder, or names
/// the one of --save before its first checkpoint. `model` gives the vocabulary's size where Megatron's
/// checkpoint does not. kNoInput with --exit-on-missing-checkpoint, and when a named checkpoint is missing.
/// kData for damage, for a folder of checkpoints without a tracker, and for anything that is not a
/// checkpoint; also, when a model is to be trained, for an adapter, and for another tool's model in the
/// folder of --save.
std::optional<StartPoint> find_start(const CheckpointConfig&, const ModelConfig& model,
                                     Trained trained = Trained::kModel);

/// The options that make a command resume from the state saved at `iteration`, such as "--load DIR"; empty:
/// the same command resumes.
std::string options_to_resume(const CheckpointConfig&, int64_t iteration);

/// Converts the schedule and the position in the data of `start` to this run's batch size at the same number
/// of steps. Only for a start whose progress is counted in steps (StartPoint::step_samples) of another size:
/// the run continues as if those steps had been its own. `epoch`: samples of one pass over the data, 0:
/// unknown; a decay over the same epochs then spans all of this run's steps.
void count_in_steps(StartPoint& start, const TrainConfig&, int64_t epoch);

/// The schedule to continue with: it must be the checkpoint's, unless the options say which of the two
/// applies. kUsage.
LrSchedule agreed_schedule(const LrSchedule& ours, const StartPoint&, const CheckpointConfig&);

/// The options that --use-checkpoint-args takes from the checkpoint of --load or --checkpoint, and where they
/// are stored; nothing when there is no checkpoint. kData when it stores none.
struct SavedArgs {
  Json args;
  std::string folder;
  std::string
      tokenizer;  // folder that holds the checkpoint's copy of the tokenizer, directly or below, if any
};
std::optional<SavedArgs> saved_args(const CheckpointConfig&);

/// The tokenizer that the model of --load was trained with, if its files are stored with the model; nothing
/// for a fresh start or without such files. Settings that no file stores (--no-hf-special-tokens, …) come
/// from `run`, the run's own tokenizer, unless a checkpoint of ours has them. Throws as find_start() does.
std::optional<TokenizerFiles> tokenizer_of_start(const CheckpointConfig&, const TokenizerConfig& run);

}  // namespace megalith
