#include "libcore/parallel/devices/device_calls.h"

#include <utility>

#include "libcore/parallel/devices/device_world.h"

namespace megalith {

DeviceCalls::DeviceCalls(DeviceWorld& world, Members members, std::unique_ptr<DeviceGroup> group)
    : world_(world), members_(std::move(members)), group_(std::move(group)) {
  world_.add(this);
}

DeviceCalls::~DeviceCalls() {
  world_.remove(this);
}

void DeviceCalls::launch(Stream& stream, std::span<const DeviceCall> calls, uint64_t number,
                         const GroupCall& call) {
  group_->launch(stream, calls, number);
  launched_.push_back({number, call});
  pending_number();  // forgets what is done
}

uint64_t DeviceCalls::pending_number() {
  const std::optional<uint64_t> first = group_->pending();
  while (!launched_.empty() && (!first || launched_.front().number < *first)) launched_.pop_front();
  return first.value_or(0);
}

std::optional<DeviceCalls::Pending> DeviceCalls::pending() {
  if (pending_number() == 0 || launched_.empty()) return std::nullopt;
  return Pending{launched_.front().number, describe(launched_.front().call)};
}

}  // namespace megalith
