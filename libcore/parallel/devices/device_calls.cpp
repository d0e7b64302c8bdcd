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
  if (const uint64_t turn = group_->launch(stream, calls); turn != 0) launched_.push_back({turn, call});
  pending_turn();  // forgets what is done
}

uint64_t DeviceCalls::pending_turn() {
  const std::optional<uint64_t> first = group_->pending();
  while (!launched_.empty() && (!first || launched_.front().turn < *first)) launched_.pop_front();
  return first.value_or(0);
}

std::optional<DeviceCalls::Pending> DeviceCalls::pending() {
  const uint64_t turn = pending_turn();
  if (turn == 0) return std::nullopt;
  if (launched_.empty() || launched_.front().turn != turn)
    return Pending{members_.name, turn, "replay of recorded calls"};
  const Call& call = launched_.front().call;
  return Pending{call.communicator, call.number, describe(call.what)};
}

}  // namespace megalith
