#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libcore/parallel/processes/process_world.h"
#include "libcore/tensor/view.h"

namespace megalith {

/// The messages between one rank and the others of a group. `peer` is a place in the group.
class ProcessMail {
 public:
  /// Why a message was not sent or received.
  struct Trouble {
    ProcessWorld::Waited waited = ProcessWorld::Waited::kDone;
    std::vector<int> peers = {};  // that were waited for
    std::string problem = {};     // with the message itself

    explicit operator bool() const { return waited != ProcessWorld::Waited::kDone || !problem.empty(); }
  };

  ProcessMail(ProcessWorld& world, int group, std::vector<int> world_ranks);
  ProcessMail(const ProcessMail&) = delete;
  ProcessMail& operator=(const ProcessMail&) = delete;
  /// Waits until nobody reads `memory` of the slots any more. close() comes before.
  ~ProcessMail();

  /// False while a message is in the slots that it had.
  bool set_slots(const View& memory, int slots);
  Trouble send(const ConstView&, int peer);
  Trouble recv(const View&, int peer);
  /// Waits until all messages have been received, or nobody will.
  Trouble close();

 private:
  struct Head;
  struct Slot;
  /// What is on its way to one peer, oldest first, and the thread that waits until it is received, so that
  /// send() need not.
  struct Route {
    std::deque<Slot*> slots;
    std::thread postman;
  };
  using Lock = std::unique_lock<std::mutex>;

  void deliver(int peer);
  bool is_delivered(Slot&, int peer);
  std::vector<int> receivers() const;
  template <class Ready>
  ProcessWorld::Waited wait(Lock&, const Ready&);

  ProcessWorld& world_;
  const int group_;
  const std::vector<int> world_ranks_;
  size_t slot_bytes_ = 0;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  bool closed_ = false;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Route> routes_;
};

}  // namespace megalith
