#include "libcore/parallel/processes/process_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/refusals.h"
#include "libcore/base/terminal.h"
#include "libcore/base/text.h"
#include "libcore/parallel/group_call.h"

namespace megalith {
namespace {

using Direction = MeshBuffer::Direction;
using Outcome = MeshBuffer::Outcome;

constexpr std::chrono::milliseconds kBetweenLooks(20);  // time between two checks of the peers
constexpr std::chrono::milliseconds kToFindOthers(50);  // within which ranks that died together are found
/// A peer's notice may arrive before a message that the peer sent earlier. This rank waits this much longer
/// for such a message.
constexpr std::chrono::milliseconds kGrace(500);
// A peer that has not received a notice after this time has stopped running.
constexpr std::chrono::seconds kToTell(1);
/// A running process answers within this time, even if it is one of many on its cores.
constexpr std::chrono::seconds kToAnswer(2);
constexpr size_t kNoticeText = 2000;

}  // namespace

/// A message from one rank to another outside of all calls. The receiver's memory is zero at first; its last
/// byte shows that the notice has arrived.
struct ProcessWorld::Notice {
  enum Kind : uint8_t { kNone, kLeaves, kStops };
  char text[kNoticeText] = {};
  Kind kind = kNone;

  Notice() = default;
  Notice(Kind k, const std::string& why) : kind(k) { why.copy(text, kNoticeText - 1); }
  /// The text in printable form, since the peer may have sent anything.
  std::string why() const { return printable({text, ::strnlen(text, kNoticeText)}, kNoticeText); }
  bool has_arrived() { return std::atomic_ref(kind).load() != kNone; }
};

/// A rank that this one is connected to.
struct ProcessWorld::Peer {
  enum State { kPresent, kLeft, kStopped, kLost };

  /// Checks, without waiting, whether the peer's notice has arrived or its connection is lost.
  State look() {
    if (received.has_arrived()) {
      notice_in->wait(Direction::kReceive);  // waits until the mesh has finished with the notice
      return received.kind == Notice::kLeaves ? kLeft : kStopped;
    }
    notice_in->interrupt(Direction::kReceive);  // so that the wait does not block
    return notice_in->wait(Direction::kReceive) == Outcome::kLost ? kLost : kPresent;
  }

  State state = kPresent;
  Notice received, sent;
  std::unique_ptr<MeshBuffer> notice_in, notice_out;
  int32_t waits_for = -1;
  std::unique_ptr<MeshBuffer> waits_for_in, waits_for_out;
};

uint64_t slot_of(int group, SlotKind kind, uint64_t number) {
  constexpr int kNumberBits = 44;
  return static_cast<uint64_t>(group) << 48 | static_cast<uint64_t>(kind) << kNumberBits |
         (number & ((uint64_t{1} << kNumberBits) - 1));
}

ProcessWorld::ProcessWorld(const ProcessCommOptions& options,
                           const std::function<std::unique_ptr<Mesh>(const MeshOptions&)>& connect)
    : options_(options),
      mesh_(connect({.rank = options.rank,
                     .size = options.size,
                     .exchange = options.exchange,
                     .interface_address = options.interface_address,
                     .timeout = options.timeout,
                     .name_of = [this](int rank) { return name_of(rank); }})),
      timeout_(options.timeout) {
  options_.exchange = nullptr;  // frees what the function holds
  for (int rank = 0; rank < size(); ++rank) {
    peers_.push_back(rank == options_.rank ? nullptr : std::make_unique<Peer>());
    if (rank != options_.rank) connect_peer(rank);
  }
  watch_ = std::thread([this] { keep_watch(); });
}

/// Posts waits_for_ for sending, but the mesh reads it only when the peer asks for it. So the mesh answers by
/// itself, even if no other thread of this rank runs.
void ProcessWorld::connect_peer(int rank) {
  static_assert(sizeof waits_for_ == sizeof Peer::waits_for);
  Peer& other = peer(rank);
  other.notice_in = buffer(&other.received, sizeof(Notice));
  other.notice_out = buffer(&other.sent, sizeof(Notice));
  other.waits_for_in = buffer(&other.waits_for, sizeof other.waits_for);
  other.waits_for_out = buffer(&waits_for_, sizeof waits_for_);
  other.notice_in->receive(rank, {slot_of(0, SlotKind::kNotice, 0), 0, sizeof(Notice)});
  other.waits_for_out->send(rank, {slot_of(0, SlotKind::kWaitsFor, 0), 0, sizeof waits_for_});
}

ProcessWorld::~ProcessWorld() {
  if (!stopped()) leave();
  await_told();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    alarm_changed_.notify_one();
  }
  watch_.join();
}

std::string ProcessWorld::name_of(int rank) const {
  return options_.rank_names.empty() ? concat("rank ", rank) : options_.rank_names[static_cast<size_t>(rank)];
}

// ---- waits

/// Waits for one message. Returns kInterrupted if the deadline has passed, the run was stopped or the peer
/// has left, and sometimes for no reason.
Outcome ProcessWorld::wait(Wait wait) {
  {
    const std::lock_guard lock(mutex_);
    const bool left = peer(wait.peer).state == Peer::kLeft;
    if (!wait.after_stop && (stopped() || left != wait.peer_left)) return Outcome::kInterrupted;
    waits_.push_back(&wait);
    if (wait.deadline < alarm_) {
      alarm_ = wait.deadline;
      alarm_changed_.notify_one();
    }
  }
  const Outcome outcome = wait.buffer.wait(wait.direction);
  const std::lock_guard lock(mutex_);
  std::erase(waits_, &wait);
  return outcome;
}

/// The mutex must be held.
void ProcessWorld::interrupt_waits(const std::function<bool(const Wait&)>& which) {
  for (const Wait* const wait : waits_)
    if (which(*wait)) wait->buffer.interrupt(wait->direction);
}

ProcessWorld::Waited ProcessWorld::await(MeshBuffer& buffer, Direction direction, int peer) {
  note_wait(peer);
  const Waited waited = await_for(timeout(), buffer, direction, peer);
  if (waited == Waited::kDone) note_wait(-1);
  return waited;
}

ProcessWorld::Waited ProcessWorld::await_for(std::chrono::milliseconds time, MeshBuffer& buffer,
                                             Direction direction, int peer) {
  Time deadline = Clock::now() + time;
  for (bool left = false;;) {
    if (!left && has_left(peer)) {
      left = true;
      deadline = std::min(deadline, Clock::now() + kGrace);
    }
    if (stopped()) return await_after_stop({buffer, direction, peer, deadline, left, true});
    const Outcome outcome = wait({buffer, direction, peer, deadline, left});
    if (outcome == Outcome::kDone) return Waited::kDone;
    if (outcome == Outcome::kLost) check_peer(peer, true);
    if (stopped()) continue;
    if (left && outcome == Outcome::kLost) return Waited::kLeft;
    if (Clock::now() >= deadline) return left ? Waited::kLeft : Waited::kLate;
  }
}

/// Waits a little longer for a message after the run was stopped: the message may have been sent before the
/// notice that stopped the run.
ProcessWorld::Waited ProcessWorld::await_after_stop(Wait last) {
  last.deadline = std::min(last.deadline, calls_end_.load());
  while (Clock::now() < last.deadline) {
    const Outcome outcome = wait(last);
    if (outcome == Outcome::kDone) return Waited::kDone;
    if (outcome == Outcome::kLost) break;
  }
  return Waited::kStopped;
}

bool ProcessWorld::has_left(int rank) const {
  const std::lock_guard lock(mutex_);
  return peer(rank).state == Peer::kLeft;
}

std::vector<int> ProcessWorld::left() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank && has_left(rank)) ranks.push_back(rank);
  return ranks;
}

/// The peers that have neither left nor been lost. The mutex must be held.
std::vector<int> ProcessWorld::present_peers() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank && peer(rank).state != Peer::kLeft && peer(rank).state != Peer::kLost)
      ranks.push_back(rank);
  return ranks;
}

/// Waits a moment for the peer's answer. True if nothing more has to be awaited.
bool ProcessWorld::has_answered(int rank, std::chrono::milliseconds moment) {
  const Outcome outcome = wait({*peer(rank).waits_for_in, Direction::kReceive, rank, Clock::now() + moment});
  check_peer(rank, outcome == Outcome::kLost);  // a peer that has stopped the run need not answer
  return outcome == Outcome::kDone || has_left(rank);
}

/// Those of the peers `asked` that do not answer. An interrupted wait does not tell whether the answer is
/// there, so all are awaited in turn, a moment each, and once more after the time to answer.
std::vector<int> ProcessWorld::silent_of(std::vector<int> asked) {
  const Time deadline = Clock::now() + kToAnswer;
  for (bool last = false; !asked.empty() && !last && !stopped();) {
    last = Clock::now() >= deadline;
    const auto share = std::chrono::milliseconds(kToAnswer) / static_cast<int>(asked.size());
    const auto moment = std::min(kBetweenLooks, share);
    std::erase_if(asked, [&](int rank) { return has_answered(rank, moment); });
  }
  return asked;
}

void ProcessWorld::note_device_wait(bool waits) {
  at_device_ = waits;
  note_wait(-1);
}

/// Asks all other ranks whom they wait for, and returns those that do not answer; the others' answers are in
/// Peer::waits_for. Nothing if they have been asked before: a peer answers once.
std::optional<std::vector<int>> ProcessWorld::ask_all() {
  std::vector<int> asked;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(asked_, true)) return std::nullopt;
    asked = present_peers();
  }
  for (const int rank : asked)
    peer(rank).waits_for_in->receive(rank, {slot_of(0, SlotKind::kWaitsFor, 0), 0, sizeof waits_for_});
  return silent_of(asked);
}

ProcessWorld::Culprits ProcessWorld::away_from_devices() {
  const auto silent = ask_all();
  if (!silent || stopped()) return {};
  if (!silent->empty()) return {*silent, true};
  Culprits away;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank && (has_left(rank) || peer(rank).waits_for != kAtDevice))
      away.ranks.push_back(rank);
  return away;
}

ProcessWorld::Culprits ProcessWorld::held_up_by(const std::vector<int>& missing) {
  const auto silent = ask_all();
  if (!silent || stopped()) return {missing};
  if (!silent->empty()) return {*silent, true};
  int last = missing.front();
  for (int step = 0; step < size(); ++step) {
    const int next = last == rank() ? last : peer(last).waits_for;
    if (next < 0)
      return std::find(missing.begin(), missing.end(), last) == missing.end() ? Culprits{{last}}
                                                                              : Culprits{missing};
    last = next;
  }
  return {missing};  // the ranks wait for each other
}

void ProcessWorld::use_group(int number) {
  if (number >= kMaxGroups)
    megalith::fail(ErrorKind::kInternal, "a run of more than ", kMaxGroups, " groups of ranks");
  int next = next_group_.load();
  while (next <= number && !next_group_.compare_exchange_weak(next, number + 1)) {
  }
}

// ---- the watch

/// The world's thread. Waits in the mesh have no deadline, and a thread can wait for only one buffer. So this
/// thread interrupts waits whose time is over, and checks all peers in turn. It never waits for a peer
/// itself, since nobody would interrupt it.
void ProcessWorld::keep_watch() {
  std::unique_lock lock(mutex_);
  for (Time next_look = Clock::now(); !ended_;) {
    alarm_ = next_look;
    for (const Wait* const wait : waits_) alarm_ = std::min(alarm_, wait->deadline);
    alarm_changed_.wait_until(lock, Time(alarm_));
    const Time now = Clock::now();
    const auto is_late = [now](const Wait& wait) { return wait.deadline <= now; };
    interrupt_waits(is_late);
    std::erase_if(waits_, [&](const Wait* wait) { return is_late(*wait); });
    if (now < next_look) continue;
    lock.unlock();
    for (int rank = 0; rank < size(); ++rank)
      if (rank != options_.rank) check_peer(rank, false);
    lock.lock();
    next_look = Clock::now() + kBetweenLooks;
  }
}

/// Checks whether a peer has left, has stopped the run, or is lost. `lost`: its connection is known to be
/// broken; the peer's notice may have arrived before it broke.
void ProcessWorld::check_peer(int rank, bool lost) {
  if (look_at(rank, lost)) end_by_loss();
}

/// Whether the peer is now found to be lost. If its notice stops the run, the run ends here, too.
bool ProcessWorld::look_at(int rank, bool lost) {
  Peer& other = peer(rank);
  {
    const std::lock_guard lock(mutex_);
    if (other.state != Peer::kPresent) return false;
    other.state = other.look();
    if (lost && other.state == Peer::kPresent) other.state = Peer::kLost;
    if (other.state == Peer::kPresent) return false;
    interrupt_waits([rank](const Wait& wait) { return wait.peer == rank; });
    peer_ended_.notify_all();
  }
  if (other.state == Peer::kStopped) end_run(other.received.why(), false);
  return other.state == Peer::kLost;
}

/// When a rank dies, others end because of it and may be found first. So all peers are checked, after a
/// moment in which the transport's thread sees the ends of all connections. If one of the peers has said why
/// the run ends, that is the reason; otherwise the reason names all lost ranks.
void ProcessWorld::end_by_loss() {
  std::this_thread::sleep_for(kToFindOthers);
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank) look_at(rank, false);
  const std::vector<std::string> names = names_of_lost();
  end_run(names.size() == 1
              ? concat("the connection to ", names.front(),
                       " is lost: its process ended, or its machine or the network failed")
              : concat("the connections to ", join(names, " and "),
                       " are lost: their processes ended, or their machines or the network failed"),
          true);
}

std::vector<std::string> ProcessWorld::names_of_lost() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank && peer(rank).state == Peer::kLost) names.push_back(name_of(rank));
  return names;
}

// ---- the end

std::string ProcessWorld::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

/// Ends the run unless it has already ended. If this rank ends it, it tells the others.
void ProcessWorld::end_run(const std::string& why, bool by_this_rank) {
  const std::lock_guard lock(mutex_);
  if (stopped()) return;
  why_ = why;
  calls_end_.store(Clock::now() + (by_this_rank ? std::chrono::milliseconds(0) : kGrace));
  stopped_.store(true);
  interrupt_waits([](const Wait&) { return true; });
  peer_ended_.notify_all();
  if (by_this_rank) tell({Notice::kStops, why});
}

void ProcessWorld::stop(const std::string& why) {
  end_run(why, true);
  await_told();
}

void ProcessWorld::fail(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Aborted&) {  // nothing to do: another rank stopped the run
  } catch (...) {
    stop(concat(name_of(rank()), ": ", as_error(error).what()));
  }
}

/// Sends a notice to all other ranks; await_told() waits until it is sent. The mutex must be held.
void ProcessWorld::tell(const Notice& notice) {
  if (leaving_) return;  // the last notice has been sent
  leaving_ = notice.kind == Notice::kLeaves;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == options_.rank || peer(rank).state == Peer::kLost) continue;
    peer(rank).sent = notice;
    peer(rank).notice_out->send(rank, {slot_of(0, SlotKind::kNotice, 0), 0, sizeof(Notice)});
    told_.push_back(rank);
  }
}

void ProcessWorld::await_told() {
  std::vector<int> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(told_);
  }
  const Time deadline = Clock::now() + kToTell;
  for (const int rank : told) wait({*peer(rank).notice_out, Direction::kSend, rank, deadline, false, true});
}

void ProcessWorld::leave() {
  std::unique_lock lock(mutex_);
  tell({Notice::kLeaves, {}});
  lock.unlock();
  await_told();
  lock.lock();
  peer_ended_.wait_for(lock, timeout(), [&] {
    return stopped() || std::all_of(peers_.begin(), peers_.end(),
                                    [](const auto& other) { return !other || other->state == Peer::kLeft; });
  });
}

}  // namespace megalith
