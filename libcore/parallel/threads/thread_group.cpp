#include "libcore/parallel/threads/thread_group.h"

#include <algorithm>
#include <utility>

#include "libcore/base/machine/proc.h"
#include "libcore/base/refusals.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/threads/last_wait.h"

namespace megalith {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSpins = 400;  // about ten microseconds, longer than a rank that is running takes to arrive

/// Lets the processor pause between two checks.
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// With more ranks than cores, spinning would only take the core from the rank that is waited for.
int spins_for(int ranks) {
  return ranks <= usable_cpus() ? kSpins : 0;
}

}  // namespace

// ---- the run

ThreadWorld::ThreadWorld(int size, std::chrono::milliseconds timeout)
    : timeout_(timeout), spins_(spins_for(size)), ranks_(static_cast<size_t>(size)) {}

std::string ThreadWorld::why() const {
  const std::lock_guard lock(end_mutex_);
  return why_;
}

void ThreadWorld::stop(const std::string& why, int rank, const std::exception_ptr& error) {
  const std::lock_guard lock(end_mutex_);
  if (!aborted_.load()) why_ = why;
  if (error && !error_) {
    error_ = error;
    error_rank_ = rank;
  }
  aborted_.store(true);
}

void ThreadWorld::abort(const std::string& why) {
  stop(why);
  wake_all();
}

void ThreadWorld::fail(int rank, const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Aborted& aborted) {
    stop(aborted.what());
  } catch (const Stopped& stopped) {
    stop(concat("rank ", rank, ": stopped by ", stopped.name), rank, error);
  } catch (...) {
    stop(concat("rank ", rank, ": ", as_error(error).what()), rank, error);
  }
  wake_all();
}

void ThreadWorld::rethrow_error() const {
  const std::lock_guard lock(end_mutex_);
  if (!aborted_.load()) return;
  if (!error_) throw Aborted(why_);
  try {
    std::rethrow_exception(error_);
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    const Error error = as_error(std::current_exception());
    throw Error(error.kind(), concat("rank ", error_rank_, ": ", error.what()));
  }
}

void ThreadWorld::add(ThreadGroup* group) {
  const std::lock_guard lock(groups_mutex_);
  groups_.push_back(group);
}

void ThreadWorld::remove(ThreadGroup* group) {
  const std::lock_guard lock(groups_mutex_);
  std::erase(groups_, group);
}

void ThreadWorld::wake_all() {
  const std::lock_guard lock(groups_mutex_);
  for (ThreadGroup* const group : groups_) group->wake_all();
}

// ---- waits

ThreadGroup::ThreadGroup(std::shared_ptr<ThreadWorld> world, std::string name, std::vector<int> world_ranks)
    : world_(std::move(world)), name_(std::move(name)), world_ranks_(std::move(world_ranks)) {
  for (size_t i = 0; i < world_ranks_.size(); ++i) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->mail.resize(world_ranks_.size());
  }
  calls_.resize(world_ranks_.size());
  ends_.resize(world_ranks_.size());
  world_->add(this);
}

ThreadGroup::~ThreadGroup() {
  world_->remove(this);
}

void ThreadGroup::wake(Member& member) {
  member.wakes.fetch_add(1);
  if (member.sleepers > 0) member.woken.notify_all();
}

void ThreadGroup::wake_all() {
  const Lock lock(mutex_);
  for (const auto& member : members_) wake(*member);
}

/// Waits until ready() and returns true. Returns false if the run was stopped, if hopeless() says that
/// ready() will never hold, or after the timeout. With kForever it waits for ready() alone, for what the
/// other ranks do without waiting for anyone; if they take longer than last_wait_limit(), the process ends.
template <class Ready, class Hopeless>
bool ThreadGroup::wait(Lock& lock, Member& mine, Patience patience, const Ready& ready,
                       const Hopeless& hopeless) {
  const Clock::time_point deadline = Clock::now() + world_->timeout();
  while (!ready()) {
    const bool may_end = patience == Patience::kDeadline;
    if (may_end && (world_->aborted() || hopeless() || Clock::now() >= deadline)) return false;
    const uint32_t seen = mine.wakes.load();
    const auto woken = [&] { return mine.wakes.load() != seen; };
    lock.unlock();
    for (int spin = 0; spin < world_->spins() && !woken(); ++spin) pause();
    lock.lock();
    ++mine.sleepers;
    if (may_end)
      mine.woken.wait_until(lock, deadline, woken);
    else if (!mine.woken.wait_for(lock, last_wait_limit(), woken))
      end_late_process("a rank that uses another rank's memory");
    --mine.sleepers;
  }
  return true;
}

std::string ThreadGroup::place(int rank, const char* call) const {
  return concat(name_, ": rank ", world_rank(rank), ": ", call, ", call ", member(rank).calls);
}

void ThreadGroup::check_alive(int rank, const char* call) const {
  if (world_->aborted()) throw Aborted(concat(place(rank, call), ": stopped: ", world_->why()));
}

/// Stops the run while the caller still holds the lock, so that no other rank can begin a wait for a rank
/// that has left.
void ThreadGroup::give_up(int rank, const char* call, const std::vector<int>& missing) const {
  check_alive(rank, call);
  std::vector<int> waited_for, left;
  for (const int other : missing) {
    waited_for.push_back(world_rank(other));
    if (member(other).left) left.push_back(world_rank(other));
  }
  const std::string text = left.empty() ? timed_out_text(world_->timeout(), list_ranks(waited_for))
                                        : peer_left_text(list_ranks(left));
  const Error error(ErrorKind::kComm, concat(place(rank, call), ": ", text));
  world_->stop(error.what(), world_rank(rank), std::make_exception_ptr(error));
  throw Error(error);
}

// ---- calls

bool ThreadGroup::arrive(Lock& lock, int rank, Patience patience) {
  const uint64_t round = round_;
  member(rank).here = true;
  if (++arrived_ < size())
    return wait(
        lock, member(rank), patience, [&] { return round_ != round; },
        [&] {
          return std::any_of(members_.begin(), members_.end(),
                             [](const auto& m) { return !m->here && m->left; });
        });
  arrived_ = 0;
  ++round_;
  for (const auto& other : members_) {
    other->here = false;
    wake(*other);
  }
  return true;
}

std::span<const GroupCall> ThreadGroup::begin_call(int rank, const GroupCall& call) {
  Lock lock(mutex_);
  ++member(rank).calls;
  check_alive(rank, call.name);
  if (member(rank).here)
    fail(ErrorKind::kInternal, place(rank, call.name), ": two threads use one communicator");
  calls_[static_cast<size_t>(rank)] = call;
  if (!arrive(lock, rank, Patience::kDeadline)) {
    std::vector<int> missing;
    for (int other = 0; other < size(); ++other)
      if (!member(other).here) missing.push_back(other);
    give_up(rank, call.name, missing);
  }
  check_calls();
  return calls_;
}

std::span<const Event> ThreadGroup::end_call(int rank, const Event& done) {
  Lock lock(mutex_);
  ends_[static_cast<size_t>(rank)] = done;
  arrive(lock, rank, Patience::kForever);
  return ends_;
}

void ThreadGroup::check_calls() const {
  for (int rank = 1; rank < size(); ++rank) {
    const GroupCall &first = calls_[0], &other = calls_[static_cast<size_t>(rank)];
    if (!agree(first, other))
      fail(ErrorKind::kInternal, name_, ": call ", member(0).calls, ": ",
           disagreement(list_ranks({world_rank(0)}), first, list_ranks({world_rank(rank)}), other));
  }
}

void ThreadGroup::give(int rank, std::shared_ptr<ThreadGroup> group) {
  const Lock lock(mutex_);
  member(rank).gift = std::move(group);
}

std::shared_ptr<ThreadGroup> ThreadGroup::take(int giver) {
  const Lock lock(mutex_);
  return member(giver).gift;
}

// ---- messages

void ThreadGroup::check_peer(int rank, const char* call, int peer) const {
  const std::string problem = peer_problem(peer, size(), rank);
  if (!problem.empty()) fail(ErrorKind::kInternal, place(rank, call), ": ", problem);
}

/// When a device has read the messages of all slots that there were.
std::vector<Event> ThreadGroup::take_reads(Member& mine) {
  std::vector<Event> reads = std::exchange(mine.former, {});
  for (Slot& slot : mine.slots)
    if (slot.read.native) reads.push_back(std::exchange(slot.read, {}));
  return reads;
}

void ThreadGroup::set_slots(int rank, const View& memory, int slots) {
  const Lock lock(mutex_);
  Member& mine = member(rank);
  if (slots < 1) fail(ErrorKind::kInternal, name_, ": ", slots, " slots for messages");
  for (const Slot& slot : mine.slots)
    if (slot.state != Slot::kFree)
      fail(ErrorKind::kInternal, name_, ": rank ", world_rank(rank), " changes slots that hold a message");
  mine.former = take_reads(mine);
  mine.slot_bytes = memory.bytes() / static_cast<size_t>(slots);
  mine.slots.assign(static_cast<size_t>(slots), {});
  std::byte* next = memory.as<std::byte>();
  for (Slot& slot : mine.slots) {
    slot.memory = next;
    next += mine.slot_bytes;
  }
}

/// A slot for a message to `peer`; waits until one is free.
ThreadGroup::Slot& ThreadGroup::take_slot(Lock& lock, int rank, const ConstView& view, int peer) {
  Member& mine = member(rank);
  ++mine.calls;
  check_alive(rank, "send");
  check_peer(rank, "send", peer);
  const std::string problem = slot_problem(view.bytes(), mine.slots.size(), mine.slot_bytes);
  if (!problem.empty()) fail(ErrorKind::kInternal, place(rank, "send"), ": ", problem);
  auto slot = mine.slots.end();
  const auto find_free = [&] {
    slot = std::find_if(mine.slots.begin(), mine.slots.end(),
                        [](const Slot& s) { return s.state == Slot::kFree; });
    return slot != mine.slots.end();
  };
  const auto receiver_left = [&](const Slot& s) { return s.state == Slot::kSent && member(s.to).left; };
  const auto all_left = [&] { return std::all_of(mine.slots.begin(), mine.slots.end(), receiver_left); };
  if (!wait(lock, mine, Patience::kDeadline, find_free, all_left)) {
    std::vector<int> receivers;
    for (const Slot& s : mine.slots) receivers.push_back(s.to);
    std::sort(receivers.begin(), receivers.end());
    receivers.erase(std::unique(receivers.begin(), receivers.end()), receivers.end());
    give_up(rank, "send", receivers);
  }
  slot->state = Slot::kSent;
  slot->to = peer;
  return *slot;
}

void ThreadGroup::send(int rank, const ConstView& view, int peer, const RankWork& work) {
  Lock lock(mutex_);
  Member& mine = member(rank);
  Slot& slot = take_slot(lock, rank, view, peer);
  const std::vector<Event> former = std::exchange(mine.former, {});
  lock.unlock();
  for (const Event& read : former) work.wait(read);
  work.wait(slot.read);
  const View message{slot.memory, view.dtype, view.shape};
  work.copy(message, view);
  const Event sent = work.done();
  lock.lock();
  member(peer).mail[static_cast<size_t>(rank)].push_back({message, &slot, sent});
  wake(member(peer));
}

void ThreadGroup::free_slot(Lock& lock, Slot& slot, int sender, const Event& read) {
  lock.lock();
  slot.read = read;
  slot.state = Slot::kFree;
  wake(member(sender));
}

void ThreadGroup::recv(int rank, const View& view, int peer, const RankWork& work) {
  Lock lock(mutex_);
  Member& mine = member(rank);
  ++mine.calls;
  check_alive(rank, "recv");
  check_peer(rank, "recv", peer);
  std::deque<Message>& mail = mine.mail[static_cast<size_t>(peer)];
  if (!wait(
          lock, mine, Patience::kDeadline, [&] { return !mail.empty(); }, [&] { return member(peer).left; }))
    give_up(rank, "recv", {peer});
  const Message message = mail.front();
  if (message.data.dtype != view.dtype || message.data.elements() != view.elements())
    fail(ErrorKind::kInternal, place(rank, "recv"), ": rank ", world_rank(peer), " sent ",
         describe(message.data), ", rank ", world_rank(rank), " receives ", describe(view));
  mail.pop_front();
  message.slot->state = Slot::kBeingRead;
  lock.unlock();
  try {
    work.wait(message.sent);
    work.copy(view, message.data);
    free_slot(lock, *message.slot, peer, work.done());
  } catch (...) {  // of a device that fails; the sender waits for its slot
    free_slot(lock, *message.slot, peer, {});
    throw;
  }
}

std::vector<Event> ThreadGroup::leave(int rank) {
  Lock lock(mutex_);
  Member& mine = member(rank);
  mine.left = true;
  for (const auto& other : members_) wake(*other);
  const auto none_in = [&](Slot::State state) {
    return std::none_of(mine.slots.begin(), mine.slots.end(),
                        [&](const Slot& s) { return s.state == state; });
  };
  const auto never = [] { return false; };
  const auto lost = [&] {
    return std::any_of(mine.slots.begin(), mine.slots.end(),
                       [&](const Slot& s) { return s.state == Slot::kSent && member(s.to).left; });
  };
  wait(
      lock, mine, Patience::kDeadline, [&] { return none_in(Slot::kSent); }, lost);
  for (const auto& other : members_) other->mail[static_cast<size_t>(rank)].clear();
  wait(
      lock, mine, Patience::kForever, [&] { return none_in(Slot::kBeingRead); }, never);
  std::vector<Event> reads = take_reads(mine);
  mine.slots.clear();
  return reads;
}

}  // namespace megalith
