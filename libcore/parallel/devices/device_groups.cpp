#include "libcore/parallel/devices/device_groups.h"

#include "libcore/base/error.h"

namespace megalith {

std::vector<uint64_t> DeviceGroups::progress() const {
  std::vector<uint64_t> turns;
  for (DeviceCalls* const calls : groups_) turns.push_back(calls->pending_turn());
  return turns;
}

std::optional<DeviceCalls::Pending> DeviceGroups::pending() const {
  for (DeviceCalls* const calls : groups_)
    if (auto pending = calls->pending()) return pending;
  return std::nullopt;
}

WaitReport DeviceGroups::report() const {
  WaitReport report;
  for (DeviceCalls* const calls : groups_) {
    const DeviceCalls::Members& members = calls->members();
    WaitReport::Group& group = report.groups.emplace_back();
    group.name = members.name;
    group.ranks = members.ranks;
    const auto pending = calls->pending();
    if (!pending) continue;
    group.number = pending->number;
    const bool of_another = pending->communicator != members.name;
    group.call = of_another ? concat(pending->call, " of ", pending->communicator) : pending->call;
  }
  return report;
}

std::string DeviceGroups::problem() const {
  for (DeviceCalls* const calls : groups_)
    if (std::string problem = calls->group().problem(); !problem.empty()) return problem;
  return {};
}

void DeviceGroups::abort() noexcept {
  std::vector<DeviceGroup*> groups;
  for (DeviceCalls* const calls : groups_) groups.push_back(&calls->group());
  if (!groups.empty()) groups.front()->abort(groups);
}

}  // namespace megalith
