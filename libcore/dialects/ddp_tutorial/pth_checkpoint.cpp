// --ckpt-format pth: pairs of files in the form of the PyTorch DDP tutorial (pth_pair.h). They are made from
// our own format, so they hold the same numbers for every layout of ranks.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/log.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/dialects/ddp_tutorial/pth_pair.h"
#include "libcore/io/files/file.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// The number of the newest pair below `root`; nothing when there is none.
std::optional<int64_t> newest_pair(const std::string& root) {
  const std::vector<int64_t> numbers = pair_numbers(root);
  return numbers.empty() ? std::nullopt : std::optional(numbers.back());
}

/// Refuses a run that would start from a model file in --save without its optimizer file: the run would begin
/// at step 0, and its pairs would overwrite the existing ones. Returns the message; empty if the run may
/// start.
std::string overwriting(const StartPoint& start, const std::string& save) {
  const fs::path model = start.path;
  std::error_code error;
  if (start.state || !fs::equivalent(model.parent_path(), save, error)) return {};
  std::string optimizer = model.filename().string();
  optimizer.replace(0, optimizer.find('_'), "optimizer");
  return concat(
      (model.parent_path() / optimizer).string(),
      ": is not there; the weights alone begin at step 0, whose pairs would overwrite those in --save ", save,
      "; put it back, or move ", start.path, " to a separate folder and give that as --load");
}

class FoundPair final : public FoundCheckpoint {
 public:
  FoundPair(std::string root, int64_t number) : root_(std::move(root)), number_(number) {}

  StartPoint start(const CheckpointConfig& config, const ModelConfig& model, Trained) const override {
    StartPoint start = read_pair(root_, number_, model);
    start.no_fresh_start = overwriting(start, config.save);
    return start;
  }
  std::optional<SavedArgs> args() const override {
    Json args = pair_args(root_, number_);
    if (!args.is_object()) return std::nullopt;  // there is only a model file, or torch's own pair
    return SavedArgs{.args = std::move(args), .folder = root_, .tokenizer = root_};
  }

 private:
  std::string root_;
  int64_t number_;
};

class PthStore final : public CheckpointStore {
 public:
  std::unique_ptr<FoundCheckpoint> find(const CheckpointPlace& place) const override {
    const auto number = place.number ? place.number : newest_pair(place.path);
    return number ? std::make_unique<FoundPair>(place.path, *number) : nullptr;
  }

  SavePlan save(const SaveRequest& save) const override {
    return {.root = passage(save.root),
            .path = pair_path(save.root, "model", save.number),
            .number = save.number,
            .make = [&save](const std::string& ours) {
              write_pair(save.root, save.number, CheckpointReader(ours), save.trainer);
            }};
  }

  void clear_leftovers(const std::string& save, const LockFile& lock) const override {
    for (const char* const begin : {"model_", "optimizer_"}) lock.remove_leftovers_in(save, begin);
  }
  void enter(const CheckpointConfig& config) const override {
    std::error_code ignored;  // the next save reports the problem
    fs::remove_all(passage(config.save), ignored);
    warn_of_later_pairs(config);
  }
  std::vector<int64_t> numbers(const std::string& folder) const override { return pair_numbers(folder); }
  int64_t next_number(const std::string& save) const override { return newest_pair(save).value_or(-1) + 1; }
  std::optional<UntrackedCheckpoint> newest_untracked(const std::string& folder) const override {
    const auto number = newest_pair(folder);
    if (!number) return std::nullopt;
    return UntrackedCheckpoint{.name = fs::path(pair_path(folder, "model", *number)).filename().string(),
                               .iteration = pair_iteration(folder, *number).value_or(0)};
  }
  // Removes the model's file first: the optimizer's file alone is no checkpoint.
  void remove(const std::string& save, const std::function<bool(int64_t iteration)>& gone) const override {
    for (const int64_t number : pair_numbers(save))
      if (gone(pair_iteration(save, number).value_or(0)))
        for (const char* const kind : {"model", "optimizer"}) remove_file(pair_path(save, kind, number));
  }
  std::optional<std::vector<std::string>> options_to_resume(const CheckpointConfig& config,
                                                            int64_t iteration) const override {
    if (!config.number && !config.load.empty()) return std::nullopt;
    std::vector<int64_t> numbers = pair_numbers(config.save);
    std::reverse(numbers.begin(), numbers.end());
    for (const int64_t number : numbers)
      if (pair_iteration(config.save, number) == iteration)
        return std::vector{std::string("--checkpoint"), std::to_string(number)};
    return std::vector{std::string("--load"), config.save};
  }
  // Refuses a single file of a pair, because it is not a checkpoint. The pairs of a folder belong to one run.
  void refuse_part(const std::string& path) const override {
    const std::string folder = parent_or_here(path).string();
    if (path.ends_with(".pth") && newest_pair(folder))
      fail(ErrorKind::kData, path, ": is one file of a checkpoint; give its folder, ", folder,
           ", or to choose among its pairs --save ", folder, " --checkpoint N");
  }

 private:
  static void warn_of_later_pairs(const CheckpointConfig& config) {
    const int64_t newest = newest_pair(config.save).value_or(-1);
    if (!config.number || config.overwrite || newest <= *config.number) return;
    warn("--checkpoint ", *config.number, ": --save ", config.save, " has later pairs, up to number ", newest,
         "; each stays until this run replaces it; --overwrite-output-dir removes them all");
  }
  static std::string passage(const std::string& save) { return save + "/.pth"; }
};

[[maybe_unused]] const bool kAdded =
    add_checkpoint_store(add_checkpoint_format(3, "pth", {.tracked = false}), std::make_unique<PthStore>());

}  // namespace
}  // namespace megalith
