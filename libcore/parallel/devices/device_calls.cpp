#include "libcore/parallel/devices/device_calls.h"

#include <utility>

#include "libcore/parallel/devices/device_groups.h"

namespace megalith {

DeviceCalls::DeviceCalls(DeviceGroups& groups, Members members, std::unique_ptr<DeviceGroup> group)
    : groups_(groups), members_(std::move(members)), group_(std::move(group)) {
  groups_.add(this);
}

DeviceCalls::~DeviceCalls() {
  groups_.remove(this);
}

void DeviceCalls::launch(Stream& stream, std::span<const DeviceCall> calls, const Call& call) {
  group_->launch(stream, calls, ++turns_);
  launched_.push_back({turns_, call});
  pending_turn();  // forgets what is done
}

uint64_t DeviceCalls::pending_turn() {
  const std::optional<uint64_t> first = group_->pending();
  while (!launched_.empty() && (!first || launched_.front().turn < *first)) launched_.pop_front();
  return first.value_or(0);
}

std::optional<DeviceCalls::Pending> DeviceCalls::pending() {
  if (pending_turn() == 0 || launched_.empty()) return std::nullopt;
  const Call& call = launched_.front().call;
  return Pending{call.communicator, call.number, describe(call.what)};
}

}  // namespace megalith
