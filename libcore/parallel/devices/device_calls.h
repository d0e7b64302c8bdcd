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
#include "libcore/parallel/run_watch.h"

namespace megalith {

class DeviceWorld;

/// A group of devices, and the calls of it whose work may not be done yet. The DeviceWorld, which must
/// outlive it, knows all of them.
class DeviceCalls {
 public:
  struct Members {
    std::string name;        // of the communicator
    int rank;                // in the run
    std::vector<int> ranks;  // of all members, in the run
  };
  DeviceCalls(DeviceWorld&, Members, std::unique_ptr<DeviceGroup>);
  ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  DeviceGroup& group() { return *group_; }
  const Members& members() const { return members_; }
  /// Enqueues calls of the devices that together are call `number` of the communicator.
  void launch(Stream&, std::span<const DeviceCall>, uint64_t number, const GroupCall&);

  /// The first call whose work is not done.
  struct Pending {
    uint64_t number = 0;
    std::string call;  // "all_reduce of 8 fp32 (sum)"
  };
  std::optional<Pending> pending();
  /// The number of that call; 0 if there is none.
  uint64_t pending_number();

 private:
  struct Launched {
    uint64_t number;
    GroupCall call;
  };
  DeviceWorld& world_;
  const Members members_;
  std::unique_ptr<DeviceGroup> group_;
  std::deque<Launched> launched_;
};

}  // namespace megalith
