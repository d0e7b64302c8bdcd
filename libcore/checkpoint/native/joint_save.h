#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/checkpoint/native/writer.h"
#include "libcore/io/files/io_thread.h"
#include "libcore/parallel/communicator.h"

namespace megalith {

/// Saves of one run, one at a time, that all its ranks make together: a job's steps are done by a thread of
/// each rank, and no rank begins one before all have ended the one before it, so that no tracker names what
/// another rank has not written. Between the ranks go only short messages, from the thread that calls: with
/// them everybody hears of a failure, and whoever waits for a slow disk is heard of every second, so that it
/// does not count as a hang. A rank that is stopped or dies is named by the communicator.
///
/// Every rank has one and calls the same functions in the same order; the communicator's stream must be
/// synchronized before.
class JointSave {
 public:
  /// `peer_timeout`: after which a silent rank counts as gone. The communicator must outlive it.
  JointSave(Communicator& ranks, std::chrono::milliseconds peer_timeout);
  /// When a rank of several fails, a save under way leaves nothing, at the latest after the next save; the
  /// checkpoint before it stays. One rank alone finishes it, because nobody is missing.
  ~JointSave();
  JointSave(const JointSave&) = delete;
  JointSave& operator=(const JointSave&) = delete;

  /// Begins a save and returns when the ranks write; finishes the one before. What the job writes from must
  /// stay as it is until the save is complete.
  void start(std::unique_ptr<CheckpointJob> job);
  bool under_way() const { return phase_ != Phase::kNone; }
  /// Does not wait for disks; true when the save has become complete with this call. Throws on all ranks what
  /// went wrong on one (kIo where it was another one), so that all of them go on without it: nothing is under
  /// way then.
  bool advance();
  /// Waits until nothing is under way. Throws as advance().
  void finish();
  /// start() and finish(), without another thread where one rank is alone.
  void save(std::unique_ptr<CheckpointJob> job);

 private:
  enum class Phase { kNone, kBegin, kWrite, kPublish };

  void enter(Phase phase);
  void run_step();
  void wait_for_step(std::chrono::milliseconds max_wait);
  std::string own_report();
  void wait_once();
  [[noreturn]] void fail_all(const std::vector<std::string>& reports);

  Communicator& ranks_;
  const std::chrono::milliseconds round_;  // the longest silence of a rank that waits for its disk
  std::unique_ptr<CheckpointJob> job_;
  Phase phase_ = Phase::kNone;
  std::chrono::steady_clock::time_point began_, told_;  // the phase; when the log last spoke of it
  std::atomic<bool> given_up_{false};
  bool step_done_ = true;       // this rank's; with error_ under the thread's lock
  std::optional<Error> error_;  // of this rank's step
  std::optional<IoThread> thread_;
};

}  // namespace megalith
