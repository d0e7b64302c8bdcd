#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  /// Reads the checkpoint. `model` gives the vocabulary's size where the checkpoint does not. kNoInput,
  /// kData.
  virtual StartPoint start(const CheckpointConfig&, const ModelConfig& model, Trained) const = 0;
  /// The options of the run that saved the checkpoint; nothing if it stores no options.
  virtual std::optional<SavedArgs> args() const = 0;
  /// The saved model with its tokenizer; null if no tokenizer is stored with the model.
  virtual std::unique_ptr<ModelSource> model() const { return nullptr; }
};

/// The state of a run that should be saved below `root`.
struct SaveRequest {
  const std::string& root;  // --save
  const TrainState& state;
  Trainer& trainer;
  const CheckpointExtras& extras;
  int64_t number;  // of this save, in a format that counts them
};

/// The newest checkpoint of a folder in a format without a tracker.
struct UntrackedCheckpoint {
  std::string name;       // of its file
  int64_t iteration = 0;  // 0: it holds only weights
};

/// How a run's state is saved: all ranks write a checkpoint in our format, from which another format's
/// checkpoint may then be made.
struct SavePlan {
  std::string root;  // folder in which all ranks write a checkpoint in our format
  std::string path;  // path of the finished checkpoint
  /// The number in that path; nothing in a format that does not count saves.
  std::optional<int64_t> number = {};
  /// Converts the checkpoint in our format to the finished one. Called on the first rank; then `root` is
  /// removed. Empty: the checkpoint in our format is the finished one.
  std::function<void(const std::string& ours)> make = {};
};

class CheckpointStore {
 public:
  virtual ~CheckpointStore() = default;

  /// The checkpoint at that place; null if there is none in this format.
  virtual std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace&) const = 0;
  /// Plans a save. The plan refers to the request, which must outlive it.
  virtual SavePlan save(const SaveRequest&) const = 0;

  /// Why a run of this model and layout cannot be saved in this format; empty if it can.
  virtual std::string refusal(const ModelConfig&, const ParallelConfig&) const { return {}; }
  /// Removes the unfinished files of this format that killed runs left in --save. The caller holds the lock
  /// on that folder.
  virtual void clear_leftovers(const std::string& /*save*/, const LockFile&) const {}
  /// Prepares --save for a run that saves in this format, after clear_leftovers() of all formats.
  virtual void enter(const CheckpointConfig&) const {}
  /// The iteration of a checkpoint in --save from which the run resumes although no tracker names it yet.
  virtual std::optional<int64_t> untracked(const CheckpointConfig&) const { return std::nullopt; }
  /// The numbers of the checkpoints in `folder`, in ascending order, in a format that counts saves.
  virtual std::vector<int64_t> numbers(const std::string& /*folder*/) const { return {}; }
  /// The number of the next save, in such a format.
  virtual int64_t next_number(const std::string& /*save*/) const { return 0; }
  /// The newest checkpoint in `folder` that no tracker names because the format has none.
  virtual std::optional<UntrackedCheckpoint> newest_untracked(const std::string& /*folder*/) const {
    return std::nullopt;
  }
  /// Removes the checkpoints of this format in --save whose iterations `gone` selects.
  virtual void remove(const std::string& /*save*/,
                      const std::function<bool(int64_t iteration)>& /*gone*/) const {}
  /// The options that resume a run from the checkpoint of this iteration; nothing if --load with its folder
  /// is enough.
  virtual std::optional<std::vector<std::string>> options_to_resume(const CheckpointConfig&, int64_t) const {
    return std::nullopt;
  }
  /// kData when `path` is only a part of a checkpoint of this format.
  virtual void refuse_part(const std::string& /*path*/) const {}
};

/// All formats that can be written. A checkpoint is looked for in this order.
const std::map<CheckpointFormat, std::unique_ptr<const CheckpointStore>>& checkpoint_stores();
/// Registers a store. The format's source file calls this before main() with the result of
/// add_checkpoint_format(). Returns true.
bool add_checkpoint_store(CheckpointFormat, std::unique_ptr<const CheckpointStore>);
/// The store of a format. kUsage when there is none.
const CheckpointStore& store_of(CheckpointFormat);

/// The checkpoint that --load or --checkpoint names, in any format; null: there is none.
std::unique_ptr<FoundCheckpoint> find_checkpoint(const CheckpointConfig&);

}  // namespace megalith
