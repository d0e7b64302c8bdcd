// Our own format, which runs of any layout can read: docs/formats/checkpoint.md.
#include <utility>

#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/checkpoint/native/retention.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/io/files/file.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

class FoundNative final : public FoundCheckpoint {
 public:
  explicit FoundNative(std::string path) : path_(std::move(path)) {}

  StartPoint start(const CheckpointConfig&, const ModelConfig&, Trained trained) const override {
    auto reader = std::make_shared<const CheckpointReader>(path_);
    StartPoint start{.path = reader->path(), .tensors = reader};
    if (reader->has_file(kArgsFile)) start.args = reader->json(kArgsFile);
    start.args_place = concat(start.path, "/", kArgsFile);
    if (trained == Trained::kModel && start.args.is_object()) refuse_adapter_alone(start.args, start.path);
    if (reader->iteration() == kRelease) return start;
    const Json state = reader->json(kStateFile);
    const std::string where = concat(start.path, "/", kStateFile);
    take_state(start, state, where);
    if (start.state->iteration != reader->iteration())
      fail(ErrorKind::kData, where, ": iteration is ", start.state->iteration, ", but ", kIndexFile, " says ",
           reader->iteration());
    if (reader->has_file(kLossesFile))
      start.losses = LossHistory::from_json(reader->json(kLossesFile), concat(start.path, "/", kLossesFile));
    return start;
  }

  std::optional<SavedArgs> args() const override {
    const CheckpointReader reader(path_);
    return SavedArgs{.args = reader.json(kArgsFile), .folder = reader.path(), .tokenizer = reader.path()};
  }

  std::unique_ptr<ModelSource> model() const override {
    if (!CheckpointReader(path_).has_file(kArgsFile)) return nullptr;
    return std::make_unique<ModelSource>(path_, SourceOptions{.padded = true});
  }

 private:
  std::string path_;
};

SavePlan native_plan(const SaveRequest& save) {
  return {.root = save.root, .path = concat(save.root, "/", iteration_folder(save.state.iteration))};
}

class NativeStore final : public CheckpointStore {
 public:
  std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace& place) const override {
    const std::string folder = latest_checkpoint(place.path).value_or(place.path);
    if (place.number || !file_exists(folder + "/" + kIndexFile)) return nullptr;
    return std::make_unique<FoundNative>(place.path);
  }
  SavePlan save(const SaveRequest& save) const override { return native_plan(save); }
  void clear_leftovers(const std::string& save, const LockFile& lock) const override {
    end_killed_save(save);
    for (const char* const begin : {"iter_", kTrackerFile}) lock.remove_leftovers_in(save, begin);
  }
  /// Removes Megatron-LM's checkpoints, too: they have the same tracker and the same names.
  void remove(const std::string& save, const std::function<bool(int64_t iteration)>& gone) const override {
    remove_checkpoints(save, gone);
  }
};

/// Writes our format when Megatron's torch_dist is requested: both formats are independent of the layout.
class TorchDistStore final : public CheckpointStore {
 public:
  std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace&) const override {
    return nullptr;
  }  // our own format's store finds these checkpoints
  SavePlan save(const SaveRequest& save) const override { return native_plan(save); }
  void enter(const CheckpointConfig&) const override {
    log("--ckpt-format torch_dist: checkpoints are written in our own format, which fits every layout, too");
  }
};

[[maybe_unused]] const bool kAdded =
    add_checkpoint_store(add_checkpoint_format(0, "megalith", {.native = true, .with_dist = "torch_dist"}),
                         std::make_unique<NativeStore>()) &&
    add_checkpoint_store(add_checkpoint_format(2, "torch_dist", {.native = true, .with_dist = "torch_dist"}),
                         std::make_unique<TorchDistStore>());

}  // namespace
}  // namespace megalith
