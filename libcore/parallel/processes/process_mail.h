#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "libcore/parallel/processes/process_world.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// Messages between one rank and the others of a group. `peer` is a place in the group. One thread at a time
/// calls.
class ProcessMail {
 public:
  /// Why a message was not sent or received.
  struct Trouble {
    ProcessWorld::Waited waited = ProcessWorld::Waited::kDone;
    std::vector<int> peers = {};  // the peers that were waited for
    std::string problem = {};     // what is wrong with the message itself

    explicit operator bool() const { return waited != ProcessWorld::Waited::kDone || !problem.empty(); }
  };

  ProcessMail(ProcessWorld& world, int group, std::vector<int> world_ranks);
  ProcessMail(const ProcessMail&) = delete;
  ProcessMail& operator=(const ProcessMail&) = delete;
  /// close() must have been called. After destruction, the slots' memory is no longer used.
  ~ProcessMail();

  /// False if a message is still in the previous slots.
  bool set_slots(const View& memory, int slots);
  Trouble send(const ConstView&, int peer);
  Trouble recv(const View&, int peer);
  /// Waits until every message has been received or can no longer be received.
  Trouble close();

 private:
  struct Head;
  struct Slot;
  using Slots = std::deque<Slot*>;
  using Time = std::chrono::steady_clock::time_point;

  int world_rank(int peer) const { return world_ranks_[static_cast<size_t>(peer)]; }
  Slots& sent_to(int peer) { return sent_[static_cast<size_t>(peer)]; }
  std::vector<int> receivers() const;
  ProcessWorld::Waited await_oldest(int peer, std::chrono::milliseconds);
  ProcessWorld::Waited await_some(Time deadline);
  template <class Ready>
  ProcessWorld::Waited wait(const Ready&);

  ProcessWorld& world_;
  const int group_;
  const std::vector<int> world_ranks_;
  size_t slot_bytes_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  Slots free_;
  // For each peer: the slots of messages that it may not have received yet, oldest first.
  std::vector<Slots> sent_;
};

}  // namespace megalith
