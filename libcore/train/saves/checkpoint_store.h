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

/// The formats of a run's checkpoints. Each format has one source file, which registers the format's name,
/// traits (config/checkpoint_format.h) and store.
namespace megalith {

/// Where to look for a checkpoint.
struct CheckpointPlace {
  std::string path;                    // the checkpoint's folder, or the folder with all checkpoints of a run
  std::optional<int64_t> number = {};  // --checkpoint: the number of the checkpoint in that folder
};

/// An existing checkpoint that has not been read yet.
class FoundCheckpoint {
 public:
  virtual ~FoundCheckpoint() = default;
  /// Reads it. `model` gives the vocabulary's size where the checkpoint does not. kNoInput, kData.
  virtual StartPoint start(const CheckpointConfig&, const ModelConfig& model, Trained) const = 0;
  /// The options of the run that saved it; nothing: none are stored.
  virtual std::optional<SavedArgs> args() const = 0;
  /// The model, if a tokenizer is stored with the model; otherwise null.
  virtual std::unique_ptr<ModelSource> model() const { return nullptr; }
};

/// The state of a run that should be saved below `root`.
struct SaveRequest {
  const std::string& root;  // --save
  const TrainState& state;
  Trainer& trainer;
  const CheckpointExtras& extras;
};

/// How a state becomes a checkpoint.
struct SavePlan {
  std::string root;  // folder in which all ranks write a checkpoint in our format
  std::string path;  // of the run's checkpoint
  /// Makes the run's checkpoint from the one in our format; called on the first rank, after which `root` is
  /// removed. Empty: the one in our format is the run's checkpoint.
  std::function<void(const std::string& ours)> make = {};
};

class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// The checkpoint at that place; null: there is none in this format.
  virtual std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace&) const = 0;
  /// The request must outlive the plan.
  virtual SavePlan save(const SaveRequest&) const = 0;

  /// Why a run of this model and layout cannot be saved in this format; empty: it can.
  virtual std::string refusal(const ModelConfig&, const ParallelConfig&) const { return {}; }
  /// Removes from --save what killed runs left there in this format. The caller holds the lock on that
  /// folder.
  virtual void clear_leftovers(const std::string& /*save*/, const LockFile&) const {}
  /// Prepares --save for a run that saves in this format, after clear_leftovers() of all formats.
  virtual void enter(const CheckpointConfig&) const {}
  /// The iteration of a checkpoint in --save from which the run resumes although no tracker names it yet.
  virtual std::optional<int64_t> untracked(const CheckpointConfig&) const { return std::nullopt; }
  /// The iteration of the newest checkpoint in --save that no tracker names because the format has none.
  virtual std::optional<int64_t> newest(const std::string& /*save*/) const { return std::nullopt; }
  /// The options that resume from the checkpoint of an iteration, if --load with its folder does not.
  virtual std::optional<std::string> options_to_resume(const CheckpointConfig&, int64_t) const {
    return std::nullopt;
  }
  /// kData when `path` is only a part of a checkpoint of this format.
  virtual void refuse_part(const std::string& /*path*/) const {}
};

/// All formats that can be written, in the order in which they are searched.
const std::map<CheckpointFormat, std::unique_ptr<const CheckpointStore>>& checkpoint_stores();
/// Registers a store. The format's source file calls this before main() with the result of
/// add_checkpoint_format(). Returns true.
bool add_checkpoint_store(CheckpointFormat, std::unique_ptr<const CheckpointStore>);
/// kUsage when no store writes the format.
const CheckpointStore& store_of(CheckpointFormat);

/// The checkpoint that --load or --checkpoint names, in any format; null: there is none.
std::unique_ptr<FoundCheckpoint> find_checkpoint(const CheckpointConfig&);

}  // namespace megalith
