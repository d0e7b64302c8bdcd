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

/// The saves of one run, which all its ranks make together, one at a time. A thread of each rank does each
/// step of a job, and no rank begins a step before all have finished the previous one, so that no tracker
/// names a checkpoint of which a share is not yet written. The calling threads exchange only short messages.
/// Through these, all ranks learn of a failure, and a rank that waits for a slow disk reports every second,
/// so that it is not taken for hung. If a rank is stopped or dies, the communicator's error names it.
///
/// Every rank has one JointSave and calls the same functions in the same order. The communicator's stream
/// must be synchronized before each call.
class JointSave {
 public:
  /// `peer_timeout`: how long a rank may be silent before it counts as gone. The communicator must outlive
  /// this object.
  JointSave(Communicator& ranks, std::chrono::milliseconds peer_timeout);
  /// Several ranks abandon a save in progress unless it is already being published, since one of them may be
  /// gone. The previous checkpoint stays, and the files are removed, at the latest by the next save. A single
  /// rank completes its save.
  ~JointSave();
  JointSave(const JointSave&) = delete;
  JointSave& operator=(const JointSave&) = delete;

  /// Finishes the previous save, begins a new one and returns while the ranks write. The memory from which
  /// the job writes must not change until the save is complete.
  void start(std::unique_ptr<CheckpointJob> job);
  bool under_way() const { return phase_ != Phase::kNone; }
  /// Does not wait for disks. Returns true if this call has completed the save. If a rank fails, its error is
  /// thrown on all ranks (as kIo on the others). No save is in progress then, so that all ranks can continue
  /// without it.
  bool advance();
  /// Waits until no save is in progress. Throws as advance() does.
  void finish();
  /// start(), then finish(). A single rank takes all steps on the calling thread.
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
  std::chrono::steady_clock::time_point began_, told_;  // begin of the phase; last log line
  std::atomic<bool> given_up_{false};
  bool step_done_ = true;  // whether this rank's step is done; guarded, like error_, by the thread's lock
  std::optional<Error> error_;  // of this rank's step
  std::optional<SerialExecutor> thread_;
};

}  // namespace megalith
