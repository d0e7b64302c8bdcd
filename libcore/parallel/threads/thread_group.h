#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "libcore/parallel/group_call.h"
#include "libcore/parallel/threads/rank_work.h"

namespace megalith {

class ThreadGroup;

/// State that all groups of a run share: whether and why the run was stopped. A rank here is its number in
/// the run. Any thread may call.
class ThreadWorld {
 public:
  ThreadWorld(int size, std::chrono::milliseconds timeout);

  std::chrono::milliseconds timeout() const { return timeout_.load(); }
  void hurry(std::chrono::milliseconds timeout) { timeout_.store(timeout); }
  int spins() const { return spins_; }

  bool aborted() const { return aborted_.load(); }
  /// Why the run was aborted: the first reason.
  std::string why() const;
  /// Makes every later call of every group fail. Wakes no rank, since the caller may hold a group's lock.
  /// Keeps the first error that is not an Aborted, since other errors only follow from it.
  void stop(const std::string& why, int rank = -1, const std::exception_ptr& error = nullptr);
  /// stop(), then wakes all waits.
  void abort(const std::string& why);
  /// abort() with what `rank` threw.
  void fail(int rank, const std::exception_ptr& error);
  /// Throws the run's first error, with its rank, or Stopped as it is. To be called when all ranks have
  /// ended, since the first error may be reported only then.
  void rethrow_error() const;

  void add(ThreadGroup*);
  void remove(ThreadGroup*);

  int size() const { return static_cast<int>(ranks_.size()); }
  /// Whether a rank waits for its device, and whether it has left the run; for RunWatch.
  struct RankState {
    std::atomic<bool> at_device = false, left = false;
  };
  RankState& state_of(int rank) { return ranks_[static_cast<size_t>(rank)]; }

 private:
  void wake_all();

  std::atomic<std::chrono::milliseconds> timeout_;
  const int spins_;  // checks before a wait sleeps
  std::vector<RankState> ranks_;
  std::atomic<bool> aborted_{false};
  std::mutex groups_mutex_;  // guards groups_; locked before a group's mutex
  std::vector<ThreadGroup*> groups_;
  mutable std::mutex end_mutex_;  // guards the members below; locked after a group's mutex
  std::string why_;
  std::exception_ptr error_;
  int error_rank_ = -1;
};

/// A group of ranks that are threads of one process. They synchronize in its collective calls and exchange
/// messages through it. `rank` and `peer` are places in the group; messages name ranks of the run. For each
/// rank, one thread at a time calls.
///
/// With tensors on a device that the ranks share, the calls return when their work is enqueued. It waits only
/// for work that other ranks have enqueued before, so the device waits for no host.
class ThreadGroup {
 public:
  /// `world_ranks`: the ranks of the members in the run.
  ThreadGroup(std::shared_ptr<ThreadWorld>, std::string name, std::vector<int> world_ranks);
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return world_ranks_[static_cast<size_t>(rank)]; }
  const std::shared_ptr<ThreadWorld>& world() const { return world_; }

  /// Waits until every rank has made its call. Returns all calls in rank order; their memory stays valid
  /// until this rank calls end_call(). If a rank does not come or the calls disagree, it throws on every
  /// rank, and end_call() must not follow.
  std::span<const GroupCall> begin_call(int rank, const GroupCall&);
  /// Waits until no rank uses the others' memory any more, so that it may be freed. On a device, `done` is
  /// when this rank does not, and the result, which is valid until this rank's next call, has all ranks'.
  std::span<const Event> end_call(int rank, const Event& done = {});

  void set_slots(int rank, const View& memory, int slots);
  void send(int rank, const ConstView&, int peer, const RankWork&);
  void recv(int rank, const View&, int peer, const RankWork&);
  /// Ends this rank's part in the group. Waits until its messages have been received, and drops those that no
  /// one will receive. Returns the events of a device after which they have been read.
  std::vector<Event> leave(int rank);

  /// Hands a new group to its members. One rank calls give() before a collective call, and the members call
  /// take() during that call, so that the group is there before anyone takes it. `giver`: the rank that
  /// called give().
  void give(int rank, std::shared_ptr<ThreadGroup>);
  std::shared_ptr<ThreadGroup> take(int giver);

  /// Wakes every waiting rank, which then checks whether the run was stopped.
  void wake_all();

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Patience { kDeadline, kForever };
  struct Slot {
    enum State { kFree, kSent, kBeingRead } state = kFree;
    int to = 0;
    std::byte* memory = nullptr;
    Event read = {};  // when a device has read the last message
  };
  struct Message {
    ConstView data;
    Slot* slot;
    Event sent;
  };
  struct alignas(64) Member {
    std::condition_variable woken;
    std::atomic<uint32_t> wakes{0};
    int sleepers = 0;
    bool here = false, left = false;
    uint64_t calls = 0;  // collective calls that it has begun
    GroupCall call;
    std::shared_ptr<ThreadGroup> gift;
    size_t slot_bytes = 0;
    std::vector<Slot> slots;
    std::vector<Event> former;              // those of former slots
    std::vector<std::deque<Message>> mail;  // messages from each rank
  };

  Member& member(int rank) { return *members_[static_cast<size_t>(rank)]; }
  const Member& member(int rank) const { return *members_[static_cast<size_t>(rank)]; }
  static void wake(Member&);
  bool arrive(Lock&, int rank, Patience);
  template <class Ready, class Hopeless>
  bool wait(Lock&, Member&, Patience, const Ready&, const Hopeless&);
  /// "data: rank 3: all_reduce, call 17"
  std::string place(int rank, const char* call) const;
  [[noreturn]] void give_up(int rank, const char* call, const std::vector<int>& missing) const;
  void check_alive(int rank, const char* call) const;
  void check_calls() const;
  void check_peer(int rank, const char* call, int peer) const;
  Slot& take_slot(Lock&, int rank, const ConstView&, int peer);
  void free_slot(Lock&, Slot&, int sender, const Event& read);
  static std::vector<Event> take_reads(Member&);

  const std::shared_ptr<ThreadWorld> world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  /// Guards what follows. The memory that slots and calls point to is read without the mutex, so that ranks
  /// copy in parallel.
  std::mutex mutex_;
  int arrived_ = 0;
  uint64_t round_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<GroupCall> calls_;
  std::vector<Event> ends_;  // of each rank's last call
};

}  // namespace megalith
