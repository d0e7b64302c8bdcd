#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libcore/parallel/processes/gloo_comm.h"
#include "libcore/parallel/processes/mesh.h"

namespace megalith {

/// What all groups of one rank share when ranks are processes: the connections, the waits for peers, and how
/// the run ends. Ranks are those of the run. Any thread may call it.
class ProcessWorld {
 public:
  enum class Waited {
    kDone,
    kLate,     // the peer did not come in time
    kLeft,     // the peer has ended its run in order
    kStopped,  // the run was stopped: check why()
  };

  /// Connects to all others. `connect` makes the mesh.
  ProcessWorld(const ProcessCommOptions&,
               const std::function<std::unique_ptr<Mesh>(const MeshOptions&)>& connect);
  /// Tells the others that this rank has ended, and waits until they have, too, unless the run was stopped.
  ~ProcessWorld();
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::chrono::milliseconds timeout() const { return options_.timeout; }
  std::string name_of(int rank) const;  // "rank 3 on host a"

  std::unique_ptr<MeshBuffer> buffer(void* memory, size_t bytes) { return mesh_->buffer(memory, bytes); }
  /// Waits for a message of `buffer` from or to `peer`, until the run's timeout.
  Waited await(MeshBuffer& buffer, MeshBuffer::Direction, int peer);
  /// The same for a shorter or longer time.
  Waited await_for(std::chrono::milliseconds, MeshBuffer& buffer, MeshBuffer::Direction, int peer);
  bool has_left(int peer) const;
  /// What the others are told who ask: that this rank waits for that one; -1: for none. Needed to find the
  /// rank at the end of a chain of waits.
  void note_wait(int peer) { pulse_.store(peer); }

  /// Who holds up a rank that waits for `missing` in vain, and these perhaps as well.
  struct Culprits {
    std::vector<int> ranks;
    bool silent = false;  // they do not even answer
  };
  /// Asks all others whom they wait for, so that the message can name the rank that holds up the run: their
  /// processes answer by themselves if they run at all.
  Culprits held_up_by(const std::vector<int>& missing);

  bool stopped() const { return stopped_.load(); }
  /// Whether no call can end well any more: the run was stopped, by this rank, or by another one that long
  /// ago that what it had sent before is here. Until then calls that the others have ended end here, too, so
  /// that what all ranks find out in one call, all say, and none says only that another one failed.
  bool given_up() const { return stopped() && Clock::now() >= calls_end_.load(); }
  /// Why it was stopped: what came first.
  std::string why() const;
  /// From here on every wait ends with kStopped, here and, soon after they are told, on all other ranks.
  /// Returns when they have been told, or cannot be in a second.
  void stop(const std::string& why);
  /// stop() with what this rank threw.
  void fail(const std::exception_ptr& error);

  /// A number that no group of this rank had; see use_group().
  int next_group() { return next_group_.fetch_add(1); }
  /// The members have agreed on a number for a new group: the largest that any of them had, so that it is
  /// new to all.
  void use_group(int number);

 private:
  struct Notice;
  struct Peer;
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  struct Wait {
    MeshBuffer& buffer;
    MeshBuffer::Direction direction;
    int peer;
    Time deadline;
    bool peer_left = false;  // is known already
    bool tells = false;      // also when the run has been stopped
  };

  MeshBuffer::Outcome wait(Wait);
  void interrupt_late_waits();
  void watch(int rank);
  void lost(int rank);
  void leave();
  /// Stops this rank only, at `calls_end`; false when it had been stopped already.
  bool stop_here(const std::string& why, Time calls_end);
  /// await_for() when the run was stopped.
  Waited await_last(Wait);
  void connect_peer(int rank);
  void tell(const Notice&);

  ProcessCommOptions options_;
  std::unique_ptr<Mesh> mesh_;
  std::atomic<bool> stopped_{false};
  std::atomic<Time> calls_end_{};   // of a run that was stopped
  std::atomic<int> next_group_{1};  // the world is 0
  /// The rank that is waited for; the mesh sends it when a peer asks, even while this rank's threads are
  /// busy.
  std::atomic<int32_t> pulse_{-1};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable peer_ended_;
  std::string why_;
  bool leaving_ = false, asked_ = false;
  bool ended_ = false;
  std::vector<Wait*> waits_;  // that are not interrupted
  Time alarm_ = Time::min();  // when their clock looks at them again
  std::condition_variable alarm_changed_;
  std::vector<std::unique_ptr<Peer>> peers_;  // null at this rank's place
  std::thread clock_;
};

/// A slot of the mesh: those of different groups, kinds and numbers never meet.
enum class SlotKind : uint64_t { kNotice, kPulse, kHello, kReduce, kGather, kMessageHead, kMessage };
uint64_t slot_of(int group, SlotKind, uint64_t number);
constexpr int kMaxGroups = 1 << 16;

}  // namespace megalith
