#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/parallel/communicator.h"
#include "libcore/threads/serial_executor.h"

namespace megalith {

/// Saves of one run, one at a time, that all its ranks make together. Each step of a job is done by a thread
/// of each rank, and no rank begins a step before all have finished the previous one, so that no tracker
/// names what another rank has not written. The ranks exchange only short messages, from the calling thread:
/// so all learn of a failure, and a rank that waits for a slow disk is heard of every second and not taken
/// for hung. The communicator names a rank that is stopped or dies.
///
/// Every rank has one and calls the same functions in the same order; the communicator's stream must be
/// synchronized before.
class JointSave {
 public:
  /// `peer_timeout`: how long a rank may be silent before it counts as gone. The communicator must outlive
  /// this object.
  JointSave(Communicator& ranks, std::chrono::milliseconds peer_timeout);
  /// If one of several ranks fails, a save in progress leaves nothing (at the latest after the next save),
  /// and the previous checkpoint stays. A single rank completes its save, since no other is missing.
  ~JointSave();
  JointSave(const JointSave&) = delete;
  JointSave& operator=(const JointSave&) = delete;

  /// Finishes the previous save, begins a new one and returns while the ranks write. What the job writes from
  /// must not change until the save is complete.
  void start(std::unique_ptr<CheckpointJob> job);
  bool under_way() const { return phase_ != Phase::kNone; }
  /// Does not wait for disks. Returns true if this call has completed the save. If a rank fails, throws its
  /// error on all ranks (kIo on the others), so that all continue without the save: nothing is in progress
  /// then.
  bool advance();
  /// Waits until no save is in progress. Throws as advance() does.
  void finish();
  /// start() and finish(); with a single rank, on the calling thread.
  void save(std::unique_ptr<CheckpointJob> job);

 private:
  enum class Phase { kNone, kBegin, kWrite, kPublish };

  void enter(Phase phase);
  void run_step();
  void wait_for_step(std::chrono::milliseconds max_wait);
  struct Report;
  Report own_report();
  void wait_once();
  [[noreturn]] void fail_all(const std::vector<Report>& reports);

  Communicator& ranks_;
  const std::chrono::milliseconds round_;  // how long a rank that waits for its disk may be silent
  std::unique_ptr<CheckpointJob> job_;
  Phase phase_ = Phase::kNone;
  std::chrono::steady_clock::time_point began_, told_;  // of the phase; of the last log line about it
  std::atomic<bool> given_up_{false};
  bool step_done_ = true;       // this rank's step; guarded, like error_, by the thread's lock
  std::optional<Error> error_;  // of this rank's step
  std::optional<SerialExecutor> thread_;
};

}  // namespace megalith
