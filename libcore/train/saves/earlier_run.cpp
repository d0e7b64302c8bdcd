#include "libcore/train/saves/earlier_run.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/checkpoint/native/reader.h"
#include "libcore/io/files/file.h"
#include "libcore/train/saves/checkpoint_store.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

/// The newest checkpoint of a folder.
struct Held {
  std::string name;
  int64_t iteration = 0;  // 0: the checkpoint holds only weights
  bool tracked = true;
};

Held held_folder(const std::string& name) {
  const std::string_view digits = std::string_view(name).substr(name.find('_') + 1);
  return {name, parse_int(digits).value_or(0)};
}

std::optional<Held> newest_in(const std::string& save) {
  std::optional<Held> held;
  const std::vector<std::string> names = iteration_folders_in(save);
  if (const auto latest = latest_checkpoint(save))
    held = held_folder(fs::path(*latest).filename().string());
  else if (!names.empty())
    held = held_folder(names.back());
  for (const auto& [format, store] : checkpoint_stores())
    if (const auto newest = store->newest_untracked(save))
      if (!held || newest->iteration > held->iteration) held = Held{newest->name, newest->iteration, false};
  if (!held && (file_exists(save + "/config.json") || holds_foreign_model(save)))
    held = Held{"another program's model"};
  return held;
}

bool lies_in(const std::string& path, const std::string& folder) {
  std::error_code error;
  return fs::equivalent(path, folder, error) || fs::equivalent(parent_or_here(path), folder, error);
}

std::string way_to_resume(const CheckpointConfig& config, const Held& held, Trained trained) {
  if (held.iteration == 0) return {};
  if (trained == Trained::kTuned) return "--resume-from-checkpoint " + config.save;
  CheckpointConfig own = config;
  if (held.tracked) own.format = {};  // our format: its options to resume name the folder
  return options_to_resume(own, held.iteration).text();
}

}  // namespace

std::optional<NewestCheckpoint> newest_checkpoint(const std::string& save) {
  const auto held = newest_in(save);
  if (!held || held->iteration == 0) return std::nullopt;
  std::error_code none;
  const auto named = held->tracked ? fs::last_write_time(save + "/" + kTrackerFile, none)
                                   : std::filesystem::file_time_type();
  return NewestCheckpoint{held->iteration, none ? std::filesystem::file_time_type() : named};
}

std::string refusal_to_replace(const CheckpointConfig& config, const StartPoint* start, Trained trained) {
  if (config.overwrite) return {};
  const auto held = newest_in(config.save);
  if (!held) return {};
  const bool here = start && lies_in(start->path, config.save);
  const bool resumed = here && start->state && !config.finetune;
  if (resumed && (config.number || start->state->iteration >= held->iteration)) return {};
  if (here && held->iteration == 0) return {};            // weights have no iteration, so nothing is replaced
  if (here && !start->no_fresh_start.empty()) return {};  // the run will be refused with this reason instead
  const std::string resume = way_to_resume(config, *held, trained);
  return concat("--save ", config.save, ": holds ", held->name, ", ",
                resumed ? concat("but this run begins at iteration ", start->state->iteration,
                                 " and would replace what follows")
                        : std::string("which this run would replace"),
                "; ", resume.empty() ? "" : concat("resume from it with ", resume, ", "),
                "give another folder, or --overwrite-output-dir to replace it");
}

Replaced replaced_by(const CheckpointConfig& config, const StartPoint* start) {
  if (!start || !lies_in(start->path, config.save)) return {};
  const int64_t iteration =
      start->state ? start->state->iteration : held_folder(fs::path(start->path).filename()).iteration;
  return start->state && !config.finetune ? Replaced{.after = iteration} : Replaced{.start = iteration};
}

}  // namespace megalith
