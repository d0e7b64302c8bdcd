#include "libcore/parallel/processes/process_world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/parallel/group_call.h"

namespace megalith {
namespace {

using Direction = MeshBuffer::Direction;
using Outcome = MeshBuffer::Outcome;

constexpr std::chrono::hours kIdle(1);  // between looks of a clock without work
/// Waits so long for what a peer has sent before it left or stopped, because its notice may be heard first.
constexpr std::chrono::milliseconds kGrace(500);
constexpr std::chrono::seconds kToTell(1);  // a peer that does not take a notice so long has stopped itself
/// A process that runs answers within it, even if it is one of many on its cores.
constexpr std::chrono::seconds kToAnswer(2);
constexpr size_t kNoticeText = 2000;

}  // namespace

/// What one rank tells another beside all calls. The receiver's memory is zero before.
struct ProcessWorld::Notice {
  enum Kind : uint32_t { kNone, kLeaves, kStops } kind = kNone;
  char text[kNoticeText] = {};

  Notice() = default;
  Notice(Kind k, const std::string& why) : kind(k) { why.copy(text, kNoticeText - 1); }
};

/// One that this rank is connected to, and the thread that hears its notice or its end.
struct ProcessWorld::Peer {
  Notice heard, told;
  std::unique_ptr<MeshBuffer> ear, mouth;
  int32_t its_pulse = -1;
  std::unique_ptr<MeshBuffer> pulse_in, pulse_out;
  bool left = false;  // in order
  bool lost = false;
  std::thread watch;
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
                     .name_of = [this](int rank) { return name_of(rank); }})) {
  options_.exchange = nullptr;  // with what it holds
  for (int rank = 0; rank < size(); ++rank) {
    peers_.push_back(rank == options_.rank ? nullptr : std::make_unique<Peer>());
    if (rank != options_.rank) connect_peer(rank);
  }
  clock_ = std::thread([this] { interrupt_late_waits(); });
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank)
      peers_[static_cast<size_t>(rank)]->watch = std::thread([this, rank] { watch(rank); });
}

/// The pulse is sent at once, but goes when the peer asks for it: the mesh answers, even if this rank's
/// threads do not run.
void ProcessWorld::connect_peer(int rank) {
  static_assert(sizeof pulse_ == sizeof(int32_t));
  Peer& peer = *peers_[static_cast<size_t>(rank)];
  peer.ear = buffer(&peer.heard, sizeof(Notice));
  peer.mouth = buffer(&peer.told, sizeof(Notice));
  peer.pulse_in = buffer(&peer.its_pulse, sizeof peer.its_pulse);
  peer.pulse_out = buffer(&pulse_, sizeof pulse_);
  peer.ear->receive(rank, {slot_of(0, SlotKind::kNotice, 0), 0, sizeof(Notice)});
  peer.pulse_out->send(rank, {slot_of(0, SlotKind::kPulse, 0), 0, sizeof pulse_});
}

ProcessWorld::~ProcessWorld() {
  if (!stopped()) leave();
  for (const auto& peer : peers_)
    if (peer) peer->ear->interrupt(Direction::kReceive);
  for (const auto& peer : peers_)
    if (peer) peer->watch.join();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    alarm_changed_.notify_one();
  }
  clock_.join();
}

std::string ProcessWorld::name_of(int rank) const {
  return options_.rank_names.empty() ? concat("rank ", rank) : options_.rank_names[static_cast<size_t>(rank)];
}

// ---- waits

/// kInterrupted: its deadline has come, the run was stopped, the peer has left, or nothing of it.
Outcome ProcessWorld::wait(Wait wait) {
  {
    const std::lock_guard lock(mutex_);
    const bool left = peers_[static_cast<size_t>(wait.peer)]->left;
    if (!wait.tells && (stopped() || left != wait.peer_left)) return Outcome::kInterrupted;
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

/// What the clock does.
void ProcessWorld::interrupt_late_waits() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    alarm_ = Clock::now() + kIdle;
    for (const Wait* const wait : waits_) alarm_ = std::min(alarm_, wait->deadline);
    alarm_changed_.wait_until(lock, Time(alarm_));
    std::erase_if(waits_, [now = Clock::now()](const Wait* wait) {
      const bool late = wait->deadline <= now;
      if (late) wait->buffer.interrupt(wait->direction);
      return late;
    });
  }
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
    if (stopped()) return await_last({buffer, direction, peer, deadline, left, true});
    const Outcome outcome = wait({buffer, direction, peer, deadline, left});
    if (outcome == Outcome::kDone) return Waited::kDone;
    if (outcome == Outcome::kLost) lost(peer);
    if (stopped()) continue;
    if (left && outcome == Outcome::kLost) return Waited::kLeft;
    if (Clock::now() >= deadline) return left ? Waited::kLeft : Waited::kLate;
  }
}

/// The message may have come before the notice.
ProcessWorld::Waited ProcessWorld::await_last(Wait last) {
  last.deadline = std::min(last.deadline, calls_end_.load());
  while (Clock::now() < last.deadline) {
    const Outcome outcome = wait(last);
    if (outcome == Outcome::kDone) return Waited::kDone;
    if (outcome == Outcome::kLost) break;
  }
  return Waited::kStopped;
}

bool ProcessWorld::has_left(int peer) const {
  const std::lock_guard lock(mutex_);
  return peers_[static_cast<size_t>(peer)]->left;
}

ProcessWorld::Culprits ProcessWorld::held_up_by(const std::vector<int>& missing) {
  std::vector<int> asked;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(asked_, true)) return {missing};  // another call of this rank does it
    for (int rank = 0; rank < size(); ++rank)
      if (const auto& peer = peers_[static_cast<size_t>(rank)]; peer && !peer->left && !peer->lost)
        asked.push_back(rank);
  }
  for (const int rank : asked)
    peers_[static_cast<size_t>(rank)]->pulse_in->receive(rank,
                                                         {slot_of(0, SlotKind::kPulse, 0), 0, sizeof pulse_});
  const Time deadline = Clock::now() + kToAnswer;
  std::vector<int> silent;
  for (const int rank : asked)
    if (wait({*peers_[static_cast<size_t>(rank)]->pulse_in, Direction::kReceive, rank, deadline}) !=
        Outcome::kDone)
      silent.push_back(rank);
  if (stopped()) return {missing};
  if (!silent.empty()) return {silent, true};
  int last = missing.front();
  for (int step = 0; step < size(); ++step) {
    const int next = last == rank() ? last : peers_[static_cast<size_t>(last)]->its_pulse;
    if (next < 0)
      return std::find(missing.begin(), missing.end(), last) == missing.end() ? Culprits{{last}}
                                                                              : Culprits{missing};
    last = next;
  }
  return {missing};  // they wait for each other
}

void ProcessWorld::use_group(int number) {
  if (number >= kMaxGroups)
    megalith::fail(ErrorKind::kInternal, "a run of more than ", kMaxGroups, " groups of ranks");
  int next = next_group_.load();
  while (next <= number && !next_group_.compare_exchange_weak(next, number + 1)) {
  }
}

// ---- the end

void ProcessWorld::watch(int rank) {
  Peer& peer = *peers_[static_cast<size_t>(rank)];
  switch (peer.ear->wait(Direction::kReceive)) {
    case Outcome::kLost:
      return lost(rank);
    case Outcome::kInterrupted:
      return;
    case Outcome::kDone:
      break;
  }
  if (peer.heard.kind == Notice::kStops) {
    stop_here(peer.heard.text, Clock::now() + kGrace);
    return;
  }
  const std::lock_guard lock(mutex_);
  peer.left = true;
  for (const Wait* const wait : waits_)
    if (wait->peer == rank) wait->buffer.interrupt(wait->direction);
  peer_ended_.notify_all();
}

void ProcessWorld::lost(int rank) {
  {
    const std::lock_guard lock(mutex_);
    Peer& peer = *peers_[static_cast<size_t>(rank)];
    if (peer.left) return;
    peer.lost = true;
    peer_ended_.notify_all();
  }
  stop(concat("the connection to ", name_of(rank),
              " is lost: its process ended, or its machine or the network failed"));
}

std::string ProcessWorld::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

bool ProcessWorld::stop_here(const std::string& why, Time calls_end) {
  const std::lock_guard lock(mutex_);
  if (stopped()) return false;
  why_ = why;
  calls_end_.store(calls_end);
  stopped_.store(true);
  for (const Wait* const wait : waits_) wait->buffer.interrupt(wait->direction);
  peer_ended_.notify_all();
  return true;
}

void ProcessWorld::stop(const std::string& why) {
  if (stop_here(why, Clock::now())) tell({Notice::kStops, why});
}

void ProcessWorld::fail(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Aborted&) {  // somebody else did
  } catch (const std::exception& what) {
    stop(concat(name_of(rank()), ": ", what.what()));
  } catch (...) {
    stop(name_of(rank()) + " failed");
  }
}

void ProcessWorld::tell(const Notice& notice) {
  std::vector<int> told;
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) return;  // who has said so says nothing more
    leaving_ = notice.kind == Notice::kLeaves;
    for (int rank = 0; rank < size(); ++rank) {
      Peer* const peer = peers_[static_cast<size_t>(rank)].get();
      if (peer == nullptr || peer->lost) continue;
      peer->told = notice;
      peer->mouth->send(rank, {slot_of(0, SlotKind::kNotice, 0), 0, sizeof(Notice)});
      told.push_back(rank);
    }
  }
  const Time deadline = Clock::now() + kToTell;
  for (const int rank : told)
    wait({*peers_[static_cast<size_t>(rank)]->mouth, Direction::kSend, rank, deadline, false, true});
}

void ProcessWorld::leave() {
  tell({Notice::kLeaves, {}});
  std::unique_lock lock(mutex_);
  peer_ended_.wait_for(lock, timeout(), [&] {
    return stopped() ||
           std::all_of(peers_.begin(), peers_.end(), [](const auto& peer) { return !peer || peer->left; });
  });
}

}  // namespace megalith
