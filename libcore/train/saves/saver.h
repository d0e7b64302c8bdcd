#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/checkpoint/native/joint_save.h"
#include "libcore/ops/backend/late_copies.h"
#include "libcore/threads/beside.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/saves/checkpointing.h"
#include "libcore/train/step/trainer.h"

namespace megalith {

class CheckpointStore;
struct SavePlan;

struct SaverOptions {
  std::string root;
  const CheckpointStore& store;                 // store of the format to write
  int64_t first_number = 0;                     // of the first save, in a format that counts them
  std::optional<int> keep_last = {};            // number of checkpoints to keep in `root`; unset: all
  std::optional<int64_t> retain_interval = {};  // see remove_previous_checkpoint(); unset: all are kept
  bool removes() const { return keep_last || retain_interval; }
  std::vector<std::string> used = {};  // checkpoints that are never removed
  std::chrono::milliseconds peer_timeout;
  /// Called on every rank when a checkpoint is complete.
  std::function<void(const SaveReport&)> complete = {};
};

/// Creates the folder that a run saves to. Collective. kUsage when a rank does not see what the first rank
/// writes there: all ranks must write their parts of a checkpoint to the same folder.
void make_shared_folder(Communicator& ranks, const std::string& folder);

/// Saves the checkpoints of one run, one at a time. If the run has memory for a copy of what this rank saves
/// (RunShape::save_copy), training waits only until the copy is filled; a thread then writes the copy. A GPU
/// fills it while it computes the next gradients: only the update after them waits. Without such memory
/// training waits until the checkpoint is complete. It also waits for every format whose checkpoints are made
/// from ours. Every rank has a Saver and calls the same functions between the same steps; see JointSave for
/// the agreement between the ranks and for what is thrown when a disk fails on one of them. The trainer must
/// outlive it.
class Saver {
 public:
  Saver(Trainer&, SaverOptions);
  /// A single rank completes its last save.
  ~Saver();
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;

  /// Waits until the previous save is complete, then starts to save the trainer's state.
  void start(const TrainState&, const CheckpointExtras&);
  /// Call between two steps: notices when a save has completed.
  void advance() {
    begin_writing();
    if (joint_.advance()) note_complete();
  }
  /// Waits until the last save is complete.
  void finish();

  bool in_background() const { return trainer_.shape().save_copy != SaveCopy::kNone; }
  int64_t begun() const { return begun_; }  // iteration of the last save started; -1: none

 private:
  void save_ours(std::unique_ptr<CheckpointWriter>);
  void save_through_ours(std::unique_ptr<CheckpointWriter>, const SavePlan&);
  void note_complete();
  void take_copy(CheckpointWriter&);
  void copy_beside_work(CheckpointWriter&);
  void begin_writing();

  Trainer& trainer_;
  SaverOptions options_;
  HugePages copy_;
  LateCopies* const late_;            // of a device that fills the copy while it computes; null: it cannot
  std::shared_ptr<void> locked_;      // the copy's pages, of such a device
  std::optional<Stream> copying_;     // that device's stream for the copy
  std::unique_ptr<Beside> touching_;  // touches the copy's memory for the first time; null: has ended
  std::unique_ptr<CheckpointJob> copied_later_;  // the copy that it writes is not yet filled; null: none
  int64_t begun_ = -1;
  int64_t number_;       // of the next save
  SaveReport report_{};  // of the checkpoint of iteration begun_
  JointSave joint_;      // its thread reads all members above
};

}  // namespace megalith
