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

namespace megalith {

class ThreadGroup;

/// What all groups of one run share: how it ends. Ranks are those of the run. Any thread may call it.
class ThreadWorld {
 public:
  ThreadWorld(int size, std::chrono::milliseconds timeout);

  std::chrono::milliseconds timeout() const { return timeout_; }
  int spins() const { return spins_; }

  bool aborted() const { return aborted_.load(); }
  /// Why it was aborted: what came first.
  std::string why() const;
  /// From here on every call of every group fails. Wakes nobody, because a rank that holds a group's lock
  /// calls it. Keeps the first error that is no Aborted, since the others only follow from it.
  void stop(const std::string& why, int rank = -1, const std::exception_ptr& error = nullptr);
  /// stop(), and wakes all waits.
  void abort(const std::string& why);
  /// abort() with what `rank` threw.
  void fail(int rank, const std::exception_ptr& error);
  /// Throws the run's first error, with its rank; for when all ranks have ended, since until then another may
  /// come first.
  void rethrow_error() const;

  void add(ThreadGroup*);
  void remove(ThreadGroup*);

 private:
  void wake_all();

  const std::chrono::milliseconds timeout_;
  const int spins_;  // looks before a wait sleeps
  std::atomic<bool> aborted_{false};
  std::mutex groups_mutex_;  // guards groups_; taken before a group's
  std::vector<ThreadGroup*> groups_;
  mutable std::mutex end_mutex_;  // guards what follows; taken after a group's
  std::string why_;
  std::exception_ptr error_;
  int error_rank_ = -1;
};

/// A group of ranks that are threads of one process: where they meet, and what is on its way between them.
/// `rank` and `peer` are places in the group; messages tell ranks of the run. One thread at a time calls for
/// a rank.
class ThreadGroup {
 public:
  /// `world_ranks`: the members' ranks in the run.
  ThreadGroup(std::shared_ptr<ThreadWorld>, std::string name, std::vector<int> world_ranks);
  ~ThreadGroup();
  ThreadGroup(const ThreadGroup&) = delete;
  ThreadGroup& operator=(const ThreadGroup&) = delete;

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(members_.size()); }
  int world_rank(int rank) const { return world_ranks_[static_cast<size_t>(rank)]; }
  const std::shared_ptr<ThreadWorld>& world() const { return world_; }

  /// Waits until every rank has come with its call. Returns all calls in rank order; their memory is there
  /// until this rank calls end_call(). Throws, and must not end it, when somebody does not come or the calls
  /// disagree, which every rank then finds.
  std::span<const GroupCall> begin_call(int rank, const GroupCall&);
  /// Waits until no rank reads or writes the others' memory any more, so that it may be freed.
  void end_call(int rank);

  void set_slots(int rank, const View& memory, int slots);
  void send(int rank, const ConstView&, int peer);
  void recv(int rank, const View&, int peer);
  /// This rank comes to no call any more. Waits until its messages have been received, and drops them when
  /// nobody will.
  void leave(int rank);

  /// Hands a new group over to those that it is made for: give() before a call, take() of the giver's between
  /// its begin and end, so that it is there before anybody takes it.
  void give(int rank, std::shared_ptr<ThreadGroup>);
  std::shared_ptr<ThreadGroup> take(int giver);

  /// Wakes every rank that waits here, to see that the run was stopped.
  void wake_all();

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Patience { kDeadline, kForever };
  struct Slot {
    enum State { kFree, kSent, kBeingRead } state = kFree;
    int to = 0;
    std::byte* memory = nullptr;
  };
  struct Message {
    ConstView data;
    Slot* slot;
  };
  struct alignas(64) Member {
    std::condition_variable woken;
    std::atomic<uint32_t> wakes{0};
    int sleepers = 0;
    bool here = false, left = false;
    uint64_t calls = 0;  // collective ones that it has begun
    GroupCall call;
    std::shared_ptr<ThreadGroup> gift;
    size_t slot_bytes = 0;
    std::vector<Slot> slots;
    std::vector<std::deque<Message>> mail;  // from each rank
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

  const std::shared_ptr<ThreadWorld> world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  /// Guards what follows. Memory that slots and calls point to is read without it, so that ranks copy at
  /// once.
  std::mutex mutex_;
  int arrived_ = 0;
  uint64_t round_ = 0;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<GroupCall> calls_;
};

}  // namespace megalith
