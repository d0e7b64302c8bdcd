#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libcore/parallel/processes/gloo_comm.h"
#include "libcore/parallel/processes/mesh.h"

namespace megalith {

/// What all groups of one rank share when ranks are processes: connections, waits for peers, and handling of
/// the run's end. A rank here is its number in the run. Any thread may call. The object has one thread of its
/// own, whatever the number of ranks.
class ProcessWorld {
 public:
  enum class Waited {
    kDone,
    kLate,     // the peer did not come in time
    kLeft,     // the peer has left the run in order
    kStopped,  // the run was stopped; see why()
  };

  /// Connects to all other ranks. `connect` creates the mesh.
  ProcessWorld(const ProcessCommOptions&,
               const std::function<std::unique_ptr<Mesh>(const MeshOptions&)>& connect);
  /// Tells the other ranks that this rank leaves. Unless the run was stopped, waits until they leave, too.
  ~ProcessWorld();
  ProcessWorld(const ProcessWorld&) = delete;
  ProcessWorld& operator=(const ProcessWorld&) = delete;

  int rank() const { return options_.rank; }
  int size() const { return options_.size; }
  std::chrono::milliseconds timeout() const { return timeout_.load(); }
  void hurry(std::chrono::milliseconds timeout) { timeout_.store(timeout); }
  std::string name_of(int rank) const;  // "rank 3 on host a"

  std::unique_ptr<MeshBuffer> buffer(void* memory, size_t bytes) { return mesh_->buffer(memory, bytes); }
  /// Waits for a message of `buffer` from or to `peer`, at most as long as the run's timeout.
  Waited await(MeshBuffer& buffer, MeshBuffer::Direction, int peer);
  /// Like await(), but waits at most as long as given here.
  Waited await_for(std::chrono::milliseconds, MeshBuffer& buffer, MeshBuffer::Direction, int peer);
  bool has_left(int rank) const;
  std::vector<int> left() const;
  /// Sets this rank's answer to peers that ask whom it waits for; -1: nobody. A peer's held_up_by() follows
  /// these answers to the rank that holds up the run.
  void note_wait(int peer) { waits_for_.store(at_device_ ? kAtDevice : peer); }
  /// Sets whether this rank waits for its device. While it does, that is its answer, whatever note_wait()
  /// says.
  void note_device_wait(bool waits);

  /// The ranks that hold up the run.
  struct Culprits {
    std::vector<int> ranks;
    bool silent = false;  // whether their processes do not answer
  };
  /// Asks all other ranks whom they wait for. If some do not answer, returns these. Otherwise returns the
  /// rank at the end of the chain of waits that begins at `missing`, or `missing` if the chain leads to no
  /// other rank. A process answers as long as it runs, whatever its threads do.
  Culprits held_up_by(const std::vector<int>& missing);
  /// The ranks that do not wait for their devices, as RunWatch::absent() has it. Like held_up_by() it asks
  /// the peers, which answer once in a run: only the first call of the two gets answers.
  Culprits away_from_devices();

  bool stopped() const { return stopped_.load(); }
  /// Whether calls must fail from now on. When this rank stops the run, they fail at once. When another rank
  /// stops it, calls that the other ranks have completed may still complete here for a moment. So when all
  /// ranks find the same failure in the same call, each of them reports it.
  bool given_up() const { return stopped() && Clock::now() >= calls_end_.load(); }
  /// Why the run was stopped: the first reason.
  std::string why() const;
  /// Makes every wait end with kStopped, here and, as soon as they are told, on all other ranks. Returns when
  /// they have been told, or after a second.
  void stop(const std::string& why);
  /// stop() with what this rank threw.
  void fail(const std::exception_ptr& error);

  /// A number that no group of this rank has had; see use_group().
  int next_group() { return next_group_.fetch_add(1); }
  /// Marks as used the number that the members of a new group agreed on: the largest number that any of them
  /// offered, which is new to all of them.
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
    bool peer_left = false;   // it is known that the peer has left
    bool after_stop = false;  // the wait continues after the run has been stopped
  };

  Peer& peer(int rank) const { return *peers_[static_cast<size_t>(rank)]; }
  void connect_peer(int rank);
  MeshBuffer::Outcome wait(Wait);
  Waited await_after_stop(Wait);
  void interrupt_waits(const std::function<bool(const Wait&)>& which);
  void keep_watch();
  void check_peer(int rank, bool lost);
  bool look_at(int rank, bool lost);
  void end_by_loss();
  std::vector<std::string> names_of_lost() const;
  std::vector<int> present_peers() const;
  std::optional<std::vector<int>> ask_all();
  bool has_answered(int rank, std::chrono::milliseconds moment);
  std::vector<int> silent_of(std::vector<int> asked);
  void end_run(const std::string& why, bool by_this_rank);
  void tell(const Notice&);
  void await_told();
  void leave();

  ProcessCommOptions options_;
  std::unique_ptr<Mesh> mesh_;
  std::atomic<std::chrono::milliseconds> timeout_;
  std::atomic<bool> stopped_{false};
  std::atomic<Time> calls_end_{};   // when calls begin to fail in a run that was stopped
  std::atomic<int> next_group_{1};  // the world has number 0
  static constexpr int32_t kAtDevice = -2;
  std::atomic<int32_t> waits_for_{-1};
  std::atomic<bool> at_device_{false};
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable peer_ended_;
  std::string why_;
  bool leaving_ = false, asked_ = false, ended_ = false;
  std::vector<Wait*> waits_;  // current waits that were not interrupted yet
  Time alarm_ = Time::min();  // when the watch wakes
  std::condition_variable alarm_changed_;
  std::vector<std::unique_ptr<Peer>> peers_;  // for each rank; null for this rank
  std::vector<int> told_;                     // ranks whose notice may still be on its way
  std::thread watch_;
};

/// The mesh's slot for the messages of one group, kind and number. Each combination has its own slot, so that
/// messages are never confused.
enum class SlotKind : uint64_t { kNotice, kWaitsFor, kHandshake, kReduce, kGather, kMessageHead, kMessage };
uint64_t slot_of(int group, SlotKind, uint64_t number);
constexpr int kMaxGroups = 1 << 16;

}  // namespace megalith
