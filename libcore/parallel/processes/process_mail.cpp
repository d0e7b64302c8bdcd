#include "libcore/parallel/processes/process_mail.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "libcore/parallel/group_call.h"

namespace megalith {
namespace {

using Direction = MeshBuffer::Direction;
using Waited = ProcessWorld::Waited;

using Clock = std::chrono::steady_clock;

/// When there are several receivers, each is waited for this long in turn.
constexpr std::chrono::milliseconds kTurn(2);

}  // namespace

/// Precedes each message and describes it.
struct ProcessMail::Head {
  DType dtype = DType::kF32;
  int64_t elements = 0;
};

struct ProcessMail::Slot {
  struct Part {
    std::unique_ptr<MeshBuffer> buffer;
    bool under_way = false;
  };
  Head head;
  std::byte* memory = nullptr;
  Part head_out, data_out;
};

ProcessMail::ProcessMail(ProcessWorld& world, int group, std::vector<int> world_ranks)
    : world_(world), group_(group), world_ranks_(std::move(world_ranks)), sent_(world_ranks_.size()) {}

ProcessMail::~ProcessMail() = default;

bool ProcessMail::set_slots(const View& memory, int slots) {
  for (const int peer : receivers())
    while (!sent_to(peer).empty() && await_oldest(peer, kTurn) == Waited::kDone) {
    }
  if (!receivers().empty()) return false;
  slot_bytes_ = memory.bytes() / static_cast<size_t>(slots);
  slots_.clear();
  free_.clear();
  for (size_t i = 0; i < static_cast<size_t>(slots); ++i) {
    slots_.push_back(std::make_unique<Slot>());
    Slot& slot = *slots_.back();
    slot.memory = memory.as<std::byte>() + i * slot_bytes_;
    slot.head_out.buffer = world_.buffer(&slot.head, sizeof(Head));
    slot.data_out.buffer = world_.buffer(slot.memory, slot_bytes_);
    free_.push_back(&slot);
  }
  return true;
}

/// The peers that are not known to have received all their messages.
std::vector<int> ProcessMail::receivers() const {
  std::vector<int> peers;
  for (size_t peer = 0; peer < sent_.size(); ++peer)
    if (!sent_[peer].empty()) peers.push_back(static_cast<int>(peer));
  return peers;
}

/// Waits until the oldest message to a peer has been received, and frees its slot.
Waited ProcessMail::await_oldest(int peer, std::chrono::milliseconds time) {
  Slot& slot = *sent_to(peer).front();
  for (Slot::Part* const part : {&slot.head_out, &slot.data_out}) {
    if (!part->under_way) continue;
    const Waited waited = world_.await_for(time, *part->buffer, Direction::kSend, world_rank(peer));
    if (waited != Waited::kDone) return waited;
    part->under_way = false;
  }
  sent_to(peer).pop_front();
  free_.push_back(&slot);
  return Waited::kDone;
}

/// Waits until any receiver has received one more message.
Waited ProcessMail::await_some(Time deadline) {
  for (;;) {
    const std::vector<int> peers = receivers();
    bool all_left = true;
    for (const int peer : peers) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
      const Waited waited = await_oldest(peer, peers.size() == 1 ? left : std::min(left, kTurn));
      if (waited == Waited::kDone || waited == Waited::kStopped) return waited;
      all_left = all_left && waited == Waited::kLeft;
    }
    if (all_left) return Waited::kLeft;
    if (Clock::now() >= deadline) return Waited::kLate;
  }
}

/// Waits until `ready()`, which becomes true as messages are received.
template <class Ready>
Waited ProcessMail::wait(const Ready& ready) {
  if (ready()) return Waited::kDone;
  const Time deadline = Clock::now() + world_.timeout();
  world_.note_wait(world_rank(receivers().front()));
  while (!ready())
    if (const Waited waited = await_some(deadline); waited != Waited::kDone) return waited;
  world_.note_wait(-1);
  return Waited::kDone;
}

ProcessMail::Trouble ProcessMail::send(const ConstView& view, int peer) {
  if (std::string problem = slot_problem(view.bytes(), slots_.size(), slot_bytes_); !problem.empty())
    return {.problem = std::move(problem)};
  if (const Waited waited = wait([this] { return !free_.empty(); }); waited != Waited::kDone)
    return {waited, receivers()};
  Slot& slot = *free_.front();
  free_.pop_front();
  slot.head = {view.dtype, view.elements()};
  const size_t bytes = view.bytes();
  if (bytes != 0) std::memcpy(slot.memory, view.data, bytes);
  const int rank = world_rank(peer);
  slot.head_out.buffer->send(rank, {slot_of(group_, SlotKind::kMessageHead, 0), 0, sizeof(Head)});
  slot.head_out.under_way = true;
  if (bytes != 0) slot.data_out.buffer->send(rank, {slot_of(group_, SlotKind::kMessage, bytes), 0, bytes});
  slot.data_out.under_way = bytes != 0;
  sent_to(peer).push_back(&slot);
  return {};
}

/// Head and data are requested together, so that the data need not wait for the head. A message of another
/// size is sent in another slot, so its data never arrives here.
ProcessMail::Trouble ProcessMail::recv(const View& view, int peer) {
  const int rank = world_rank(peer);
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
  const Waited waited = wait([this] { return receivers().empty(); });
  return {waited, receivers()};
}

}  // namespace megalith
