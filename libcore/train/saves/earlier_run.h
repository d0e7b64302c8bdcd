#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "libcore/config/checkpoint_config.h"
#include "libcore/train/saves/start_point.h"

namespace megalith {

/// The newest complete checkpoint of a run.
struct NewestCheckpoint {
  int64_t iteration;
  std::filesystem::file_time_type named;  // when the tracker named it; the epoch for formats without one

  bool operator==(const NewestCheckpoint&) const = default;
};
/// The newest checkpoint in `save`, in any format; nothing: there is none with a state to resume from.
std::optional<NewestCheckpoint> newest_checkpoint(const std::string& save);

/// Why a run must not save to --save; empty: it may. It must not if the folder holds checkpoints of an
/// earlier run in any format, or another tool's model, unless the run continues from the newest of these
/// checkpoints or has --overwrite-output-dir. The text says what the user can do instead. `start`: where the
/// run begins; null: from scratch.
std::string refusal_to_replace(const CheckpointConfig&, const StartPoint* start, Trained);

/// What a run with --overwrite-output-dir replaces in --save.
struct Replaced {
  int64_t after = -1;  // the checkpoints of later iterations; -1: all
  /// The iteration of the checkpoint whose weights the run begins with. It must stay until the run has saved:
  /// if the run ends before that, the same command needs it again. -1: the run begins elsewhere, or continues
  /// the one that saved it.
  int64_t start = -1;
};
/// `start`: where the run begins; null: from scratch.
Replaced replaced_by(const CheckpointConfig&, const StartPoint* start);

}  // namespace megalith
