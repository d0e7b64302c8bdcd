#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "libcore/ops/backend/device_group.h"
#include "libcore/parallel/group_call.h"

namespace megalith {

class DeviceGroups;

/// A group of devices, and the calls of it whose work may not be done yet. Several communicators may call it.
/// `groups`, which must outlive it, knows all of a rank.
class DeviceCalls {
 public:
  struct Members {
    std::string name;        // of the communicator that it was made for
    std::vector<int> ranks;  // of all members, in the run
  };
  DeviceCalls(DeviceGroups& groups, Members, std::unique_ptr<DeviceGroup>);
  ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  DeviceGroup& group() { return *group_; }
  const Members& members() const { return members_; }
  /// One call of a communicator.
  struct Call {
    std::string communicator;
    uint64_t number;
    GroupCall what;
  };
  /// Enqueues calls of the devices that together are this call.
  void launch(Stream&, std::span<const DeviceCall>, const Call&);

  /// The first call whose work is not done.
  struct Pending {
    std::string communicator;
    uint64_t number = 0;
    std::string call;  // "all_reduce of 8 fp32 (sum)"; "replay of recorded calls", whose number is the turn
  };
  std::optional<Pending> pending();
  /// Which of the group's turns that is (DeviceGroup::launch); 0 if there is none.
  uint64_t pending_turn();

 private:
  struct Launched {
    uint64_t turn;
    Call call;
  };
  DeviceGroups& groups_;
  const Members members_;
  std::unique_ptr<DeviceGroup> group_;
  std::deque<Launched> launched_;
};

}  // namespace megalith
