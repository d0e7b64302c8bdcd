#pragma once

#include <functional>
#include <memory>
#include <string>

#include "libcore/parallel/communicator.h"
#include "libcore/parallel/devices/device_groups.h"
#include "libcore/parallel/devices/run_guard.h"
#include "libcore/parallel/run_watch.h"

namespace megalith {

/// How a rank ends before its work is done: the other ranks get a message, and then its groups of devices
/// end, so that its device waits for nobody. In this order, since NCCL reports to other ranks that a group
/// ends. Used by the rank's own thread.
class EarlyEnd {
 public:
  /// Names a call, or what a group does, for messages: "data: rank 3: all_reduce, call 17". Asked only when
  /// one is made.
  using Place = std::function<std::string()>;
  /// `place` names what the rank does when it ends. `host` and `groups` must outlive this object.
  EarlyEnd(Communicator& host, DeviceGroups& groups, Place place);

  /// Whether the groups have ended.
  bool ended() const { return ended_; }
  /// If the run was stopped, ends this rank's groups and throws.
  void check_alive(const Place&);
  /// Ends the groups because this rank fails.
  void give_up() noexcept;

  // These stop the run and throw kComm with the rank's place. If another rank was first, they throw Aborted.
  /// With words of NCCL. It may be the first to report the end of a rank, but does not say of which one: the
  /// hosts get time to do so.
  [[noreturn]] void stop_by_nccl(const std::string& words);
  /// Because these ranks have left: the device would wait for them for ever.
  [[noreturn]] void stop_by_absence(const std::vector<int>& left);
  /// After the timeout: names the ranks that do not wait for their devices, or the one whose call differs.
  [[noreturn]] void stop_late();

 private:
  [[noreturn]] void stop(const std::string& words);
  std::string names_of(const std::vector<int>& ranks) const;
  std::string difference();
  void end_groups() noexcept;

  Communicator& host_;
  DeviceGroups& groups_;
  const Place place_;
  RunWatch& run_;
  std::unique_ptr<Communicator> to_compare_;  // over it ranks tell each other their last calls
  bool ended_ = false;
  RunGuard guard_;
};

}  // namespace megalith
