#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "libcore/checkpoint/native/retention.h"
#include "libcore/config/pretrain_config.h"
#include "libcore/io/run/lock_file.h"
#include "libcore/json/json.h"
#include "libcore/train/log/run_observer.h"
#include "libcore/train/run/loop.h"
#include "libcore/train/run/run_progress.h"
#include "libcore/train/saves/earlier_run.h"
#include "libcore/train/saves/saver.h"

namespace megalith {

/// Writes the checkpoints of a run, and keeps those that are still needed from being removed. Every rank has
/// one object and calls the same functions. Writes nothing without --save or with --eval-only.
class RunSaves {
 public:
  /// The arguments must outlive this object.
  RunSaves(const RankInput&, const PretrainConfig&);

  bool wanted() const { return !config_.checkpoint.save.empty() && !config_.train.eval_only; }
  /// Creates the folder of --save. The first rank locks it for this run and removes what killed runs left in
  /// it. Collective. kUsage when a run that begins at `start` (null: from scratch) would replace what the
  /// folder holds (see earlier_run.h).
  void take_folder(const StartPoint* start);
  /// Keeps the run's start checkpoint from being removed, because the same command, run again, will look for
  /// it. Does nothing if --load is the folder of --save.
  void protect_base(const std::string& path);
  /// Applies --keep-last when a run resumes at `iteration`: removes older checkpoints that it does not keep.
  /// They are there if the last save of the earlier run failed.
  void remove_old(int64_t iteration) const;
  /// Prepares saving; call it before the first save. The observer is told of each complete checkpoint.
  void begin(Trainer&, RunObserver&);
  /// What choose_products() returned, which every checkpoint holds.
  void keep_products(Json products) { products_ = std::move(products); }
  /// With --overwrite-output-dir, removes what the run replaces (see earlier_run.h), and Tuning::results.
  /// Call it before the first step: a run that does no step replaces nothing.
  void make_way();

  /// Starts to save a checkpoint, unless a save of this iteration was already started.
  void save(const RunProgress&);
  /// Saves the best state so far and protects it, if the run's result is made from it (Tuning::keep_best).
  void save_best(const RunProgress&);
  /// Protects the best checkpoint so far, which is in --save, from removal by --keep-last.
  void protect_best(int64_t iteration);
  void advance() {
    if (saver_) saver_->advance();
  }
  /// Waits until the last save is complete.
  void finish() {
    if (saver_) saver_->finish();
  }
  int64_t saved() const { return saved_; }  // iteration of the last complete checkpoint; -1: none

 private:
  void require_own_folder(const StartPoint* start) const;
  void remove_replaced_start(int64_t saved);
  int64_t first_number() const;

  const RankInput& in_;
  const PretrainConfig& config_;
  std::optional<LockFile> lock_;  // lock on the folder of --save, held by the first rank
  std::string base_;              // path given to protect_base(); empty: none
  std::optional<CheckpointUse> base_use_, best_use_;
  int64_t saved_ = -1, best_ = 0;
  std::optional<int64_t> next_number_;  // of the run that is resumed; nothing: it has none
  Replaced replaced_;                   // its `start` is -1 once that checkpoint is removed
  bool has_way_ = false;                // make_way() was called
  Json data_digests_ = {};              // of the data when the run began; only on the first rank
  Json products_ = {};                  // null: none
  std::unique_ptr<Saver> saver_;        // null: nothing is saved
};

}  // namespace megalith
