#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "libcore/parallel/devices/device_calls.h"
#include "libcore/parallel/devices/wait_report.h"

namespace megalith {

/// The groups of devices that one rank has, and the calls of them that are not done.
class DeviceGroups {
 public:
  /// Until remove().
  void add(DeviceCalls* calls) { groups_.push_back(calls); }
  void remove(DeviceCalls* calls) { std::erase(groups_, calls); }

  /// For each group the turn of its first call that is not done; 0 if all are.
  std::vector<uint64_t> progress() const;
  /// Such a call of one of the groups; nothing if all are done.
  std::optional<DeviceCalls::Pending> pending() const;
  /// The first such call of each group, in words.
  WaitReport report() const;
  /// What NCCL says of the first group of which it reports an error; empty if of none.
  std::string problem() const;
  /// Ends all groups and their work. Afterwards the device waits for no other rank.
  void abort() noexcept;

 private:
  std::vector<DeviceCalls*> groups_;
};

}  // namespace megalith
