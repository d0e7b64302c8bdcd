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

/// The saves of one run. All ranks of the run save together, one checkpoint at a time. Each rank has a thread
/// that does the rank's steps of a job. No rank begins a step before all have finished the previous one, so
/// the tracker never names a checkpoint of which some rank's share is missing. The calling threads exchange
/// only short messages. Through these, all ranks learn of a failure. A rank that waits for a slow disk sends
/// a message every second, so that the others do not take it for hung. If a rank is stopped or dies, the
/// communicator's error names it.
///
/// Every rank has one JointSave and calls the same functions in the same order. The communicator's stream
/// must be synchronized before each call.
class JointSave {
 public:
  /// `peer_timeout`: how long a rank may be silent before it counts as gone. The communicator must outlive
  /// this object.
  JointSave(Communicator& ranks, std::chrono::milliseconds peer_timeout);
  /// With several ranks, abandons a save in progress, since one of the ranks may be gone, unless the
  /// checkpoint is already being published. The previous checkpoint stays. The files of an abandoned save are
  /// removed here or, at the latest, by the next save. A single rank completes its save.
  /// A step that takes longer than last_wait_limit() ends the process.
  ~JointSave();
  JointSave(const JointSave&) = delete;
  JointSave& operator=(const JointSave&) = delete;

  /// Finishes the previous save, begins a new one, and returns while the ranks are still writing. The memory
  /// that the job writes from must not change until the save is complete.
  void start(std::unique_ptr<CheckpointJob> job);
  bool under_way() const { return phase_ != Phase::kNone; }
  /// Moves the save on without waiting for disks. Returns true if this call has completed the save. If a rank
  /// fails, all ranks throw its error. After that no save is in progress, and all ranks can continue without
  /// it.
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
  void finish_alone();
  [[noreturn]] void fail_all(const std::vector<Report>& reports);

  Communicator& ranks_;
  const std::chrono::milliseconds round_;  // how long a rank that waits for its disk may be silent
  std::unique_ptr<CheckpointJob> job_;
  Phase phase_ = Phase::kNone;
  // when the phase began; when the last log line was written
  std::chrono::steady_clock::time_point began_, told_;
  std::atomic<bool> given_up_{false};
  bool step_done_ = true;       // whether this rank's step is done; like error_, guarded by the thread's lock
  std::optional<Error> error_;  // the error of this rank's step
  std::optional<SerialExecutor> thread_;
};

}  // namespace megalith
