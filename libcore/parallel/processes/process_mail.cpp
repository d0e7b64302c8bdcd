#include "libcore/parallel/processes/process_mail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/parallel/group_call.h"

namespace megalith {
namespace {

using Direction = MeshBuffer::Direction;
using Waited = ProcessWorld::Waited;

constexpr std::chrono::hours kForever(24 * 365);  // who waits for a slot has the deadline

}  // namespace

/// Goes before each message: what it is.
struct ProcessMail::Head {
  DType dtype = DType::kF32;
  int64_t elements = 0;
};

struct ProcessMail::Slot {
  Head head;
  std::byte* memory = nullptr;
  std::unique_ptr<MeshBuffer> head_out, data_out;
  size_t bytes = 0;  // of the message
  int to = 0;
  bool busy = false;
};

ProcessMail::ProcessMail(ProcessWorld& world, int group, std::vector<int> world_ranks)
    : world_(world), group_(group), world_ranks_(std::move(world_ranks)), routes_(world_ranks_.size()) {}

ProcessMail::~ProcessMail() {
  {
    const Lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  for (Route& route : routes_)
    if (route.postman.joinable()) route.postman.join();
}

bool ProcessMail::set_slots(const View& memory, int slots) {
  const Lock lock(mutex_);
  if (!receivers().empty()) return false;
  slot_bytes_ = memory.bytes() / static_cast<size_t>(slots);
  slots_.clear();
  for (size_t i = 0; i < static_cast<size_t>(slots); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    Slot& slot = *slots_.back();
    slot.memory = memory.as<std::byte>() + i * slot_bytes_;
    slot.head_out = world_.buffer(&slot.head, sizeof(Head));
    slot.data_out = world_.buffer(slot.memory, slot_bytes_);
  }
  return true;
}

/// Those that messages are on their way to.
std::vector<int> ProcessMail::receivers() const {
  std::vector<int> peers;
  for (const auto& slot : slots_)
    if (slot->busy && std::find(peers.begin(), peers.end(), slot->to) == peers.end())
      peers.push_back(slot->to);
  return peers;
}

/// A postman wakes it when a message is received, or never will be.
template <class Ready>
Waited ProcessMail::wait(Lock& lock, const Ready& ready) {
  Waited why = Waited::kDone;
  const auto over = [&] {
    const std::vector<int> peers = receivers();
    if (ready())
      why = Waited::kDone;
    else if (world_.stopped())
      why = Waited::kStopped;
    else if (std::all_of(peers.begin(), peers.end(),
                         [&](int peer) { return world_.has_left(world_ranks_[static_cast<size_t>(peer)]); }))
      why = Waited::kLeft;
    else
      return false;
    return true;
  };
  if (over()) return why;
  world_.note_wait(world_ranks_[static_cast<size_t>(receivers().front())]);
  if (!changed_.wait_for(lock, world_.timeout(), over)) return Waited::kLate;
  if (why == Waited::kDone) world_.note_wait(-1);
  return why;
}

ProcessMail::Trouble ProcessMail::send(const ConstView& view, int peer) {
  Lock lock(mutex_);
  if (std::string problem = slot_problem(view.bytes(), slots_.size(), slot_bytes_); !problem.empty())
    return {.problem = std::move(problem)};
  auto free = slots_.end();
  const Waited waited = wait(lock, [&] {
    free = std::find_if(slots_.begin(), slots_.end(), [](const auto& slot) { return !slot->busy; });
    return free != slots_.end();
  });
  if (waited != Waited::kDone) return {waited, receivers()};
  Slot& slot = **free;
  slot.head = {view.dtype, view.elements()};
  slot.bytes = view.bytes();
  slot.to = peer;
  slot.busy = true;
  if (slot.bytes != 0) std::memcpy(slot.memory, view.data, slot.bytes);
  const int rank = world_ranks_[static_cast<size_t>(peer)];
  slot.head_out->send(rank, {slot_of(group_, SlotKind::kMessageHead, 0), 0, sizeof(Head)});
  if (slot.bytes != 0)
    slot.data_out->send(rank, {slot_of(group_, SlotKind::kMessage, slot.bytes), 0, slot.bytes});
  Route& route = routes_[static_cast<size_t>(peer)];
  route.slots.push_back(&slot);
  if (!route.postman.joinable()) route.postman = std::thread([this, peer] { deliver(peer); });
  changed_.notify_all();
  return {};
}

bool ProcessMail::is_delivered(Slot& slot, int peer) {
  const int rank = world_ranks_[static_cast<size_t>(peer)];
  return world_.await_for(kForever, *slot.head_out, Direction::kSend, rank) == Waited::kDone &&
         (slot.bytes == 0 ||
          world_.await_for(kForever, *slot.data_out, Direction::kSend, rank) == Waited::kDone);
}

void ProcessMail::deliver(int peer) {
  Route& route = routes_[static_cast<size_t>(peer)];
  Lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !route.slots.empty(); });
    if (route.slots.empty()) return;
    Slot& slot = *route.slots.front();
    lock.unlock();
    const bool delivered = is_delivered(slot, peer);
    lock.lock();
    changed_.notify_all();
    if (!delivered) return;  // nor will the next ones be
    route.slots.pop_front();
    slot.busy = false;
  }
}

/// Both parts are asked for at once, so that the data need not wait for the head. A message of another size
/// than was sent lies in another slot, and never comes.
ProcessMail::Trouble ProcessMail::recv(const View& view, int peer) {
  const int rank = world_ranks_[static_cast<size_t>(peer)];
  Head head;
  const auto head_in = world_.buffer(&head, sizeof head), data_in = world_.buffer(view.data, view.bytes());
  head_in->receive(rank, {slot_of(group_, SlotKind::kMessageHead, 0), 0, sizeof head});
  if (view.bytes() != 0)
    data_in->receive(rank, {slot_of(group_, SlotKind::kMessage, view.bytes()), 0, view.bytes()});
  Waited waited = world_.await(*head_in, Direction::kReceive, rank);
  if (waited == Waited::kDone && (head.dtype != view.dtype || head.elements != view.elements()))
    return {.problem = concat(world_.name_of(rank), " sent ", head.elements, " ", name_of(head.dtype), ", ",
                              world_.name_of(world_.rank()), " receives ", describe(view))};
  if (waited == Waited::kDone && view.bytes() != 0)
    waited = world_.await(*data_in, Direction::kReceive, rank);
  if (waited != Waited::kDone) return {waited, {peer}};
  return {};
}

ProcessMail::Trouble ProcessMail::close() {
  Lock lock(mutex_);
  const Waited waited = wait(lock, [&] { return receivers().empty(); });
  return {waited, receivers()};
}

}  // namespace megalith
