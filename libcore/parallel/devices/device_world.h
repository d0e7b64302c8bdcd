#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/device_group.h"
#include "libcore/parallel/devices/device_comm.h"
#include "libcore/parallel/devices/device_groups.h"
#include "libcore/parallel/devices/early_end.h"

namespace megalith {

/// What all groups of devices of one rank share: how it waits for its device, and how that ends when another
/// rank fails. While the host waits, it watches the device, NCCL, and the other ranks' processes. A rank that
/// is lost, that fails or that does not come in time ends the work of all devices that wait for it.
///
/// Only the thread that made the object may call it, but for await(). Another thread, such as a save's,
/// watches only the device there: the rank's own thread looks at the other ranks and ends the groups after a
/// failure, or else the guard ends the process.
class DeviceWorld final : public DeviceWatch {
 public:
  /// `host` and `backend` must outlive it.
  DeviceWorld(Communicator& host, Backend& backend, const DeviceCommOptions&);
  ~DeviceWorld() override;
  DeviceWorld(const DeviceWorld&) = delete;
  DeviceWorld& operator=(const DeviceWorld&) = delete;

  void await(const std::function<bool()>& done) override;
  void give_up() noexcept override { end_.give_up(); }

  Backend& backend() const { return backend_; }
  const DeviceCommOptions& options() const { return options_; }
  RunWatch& run() const { return run_; }
  DeviceGroups& groups() { return groups_; }
  using Place = EarlyEnd::Place;
  /// If the run was stopped, ends this rank's groups, so that its device waits for nobody, and throws.
  void check_alive(const Place& place) { end_.check_alive(place); }
  /// Does `work`, in which this rank calls NCCL. If NCCL reports an error, the run stops.
  void attempt(const Place&, const std::function<void()>& work);

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait;
  bool in_own_thread() const { return std::this_thread::get_id() == thread_; }
  void look(Wait&);
  std::string place() const;

  Communicator& host_;
  Backend& backend_;
  const DeviceCommOptions options_;
  RunWatch& run_;
  const std::thread::id thread_ = std::this_thread::get_id();
  DeviceGroups groups_;
  const Place* doing_ = nullptr;  // in attempt()
  EarlyEnd end_;
};

}  // namespace megalith
