#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "libcore/config/checkpoint_config.h"
#include "libcore/config/model_config.h"
#include "libcore/config/parallel_config.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/saves/start_point.h"

/// Formats of a run's checkpoints. A format is one file, which adds its store
/// with add_checkpoint_store(); its word is one of CheckpointFormat's, with what the options have to know of
/// it.
namespace megalith {

/// Where a checkpoint is looked for.
struct CheckpointPlace {
  std::string path;                    // of its folder, or of the folder with all of a run's
  std::optional<int64_t> number = {};  // the one of this number is meant (--checkpoint)
};

/// A checkpoint that is there, not read yet.
class FoundCheckpoint {
 public:
  virtual ~FoundCheckpoint() = default;
  /// Reads it. `model` says the size of the vocabulary where the checkpoint does not. kNoInput, kData.
  virtual StartPoint start(const CheckpointConfig&, const ModelConfig& model, Trained) const = 0;
  /// Nothing: it keeps no options.
  virtual std::optional<SavedArgs> args() const = 0;
  /// The model with the tokenizer that lies with it; null: none does.
  virtual std::unique_ptr<ModelSource> model() const { return nullptr; }
};

/// The state of a run that is to be saved below `root`.
struct SaveRequest {
  const std::string& root;  // --save
  const TrainState& state;
  Trainer& trainer;
  const CheckpointExtras& extras;
};

/// How a state becomes a checkpoint.
struct SavePlan {
  std::string root;  // all ranks write a checkpoint of ours below it
  std::string path;  // of the run's checkpoint
  /// Makes that of ours, which the first rank is given; then `root` goes. Empty: ours is the run's.
  std::function<void(const std::string& ours)> make = {};
};

class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// Null: none of this format is there.
  virtual std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace&) const = 0;
  /// The request must outlive the plan.
  virtual SavePlan save(const SaveRequest&) const = 0;

  /// Why a run of this model and layout cannot be saved so; empty: it can.
  virtual std::string refusal(const ModelConfig&, const ParallelConfig&) const { return {}; }
  /// Removes from --save what killed runs left there of this format. The lock is that folder's.
  virtual void clear_leftovers(const std::string& /*save*/, const LockFile&) const {}
  /// Puts --save in order for a run that saves in this format, after clear_leftovers() of all formats.
  virtual void enter(const CheckpointConfig&) const {}
  /// The iteration of a checkpoint in --save that the run goes on from although nothing names it yet.
  virtual std::optional<int64_t> untracked(const CheckpointConfig&) const { return std::nullopt; }
  /// What goes on from the checkpoint of an iteration, where that is not --load's folder.
  virtual std::optional<std::string> options_to_resume(const CheckpointConfig&, int64_t) const {
    return std::nullopt;
  }
  /// kData when `path` is but a part of a checkpoint of this format.
  virtual void refuse_part(const std::string& /*path*/) const {}
};

/// All formats that are written, in the order in which they are looked for.
const std::map<CheckpointFormat, std::unique_ptr<const CheckpointStore>>& checkpoint_stores();
/// For the file of a format, which calls it before main(). Returns true.
bool add_checkpoint_store(CheckpointFormat, std::unique_ptr<const CheckpointStore>);
/// kUsage when nothing writes the format.
const CheckpointStore& store_of(CheckpointFormat);

/// The checkpoint that --load or --checkpoint names, of whatever format; null: there is none.
std::unique_ptr<FoundCheckpoint> find_checkpoint(const CheckpointConfig&);

}  // namespace megalith
