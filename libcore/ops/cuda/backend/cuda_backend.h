#pragma once

#include <memory>
#include <string>

#include "libcore/ops/backend/backend.h"
#include "libcore/ops/backend/device_facts.h"
#include "libcore/ops/backend/device_group.h"
#include "libcore/ops/backend/device_memory.h"
#include "libcore/threads/last_wait.h"

namespace megalith::cuda {

class GemmRunner;
class Graphs;
class OtherAttention;
struct HostWaits;

/// A backend that runs every op on one device, numbered as in the CUDA runtime. Ops enqueue and return;
/// several threads may call them, each with its own stream. `waits` bounds the waits of
/// destructors. Throws kDevice if the device does not respond.
std::unique_ptr<Backend> make_backend(int device, const LastWaits& waits);

// These take a backend that make_backend() made.
int device_of(const Backend&);
GemmRunner& products_of(Backend&);
/// What computes attention of some kinds in place of the kernels here; null: nothing does.
std::unique_ptr<OtherAttention>& other_attention(Backend&);
Graphs& graphs_of(Backend&);
/// How the host waits for a further Queue of the backend.
const HostWaits& waits_of(const Backend&);
/// From now on the host waits for the backend's streams through `watch`, which must live until another one is
/// set; null: it waits for them as long as they take.
void set_watch(Backend&, DeviceWatch* watch);

/// The devices that this process sees. Throws kDevice if there is none.
int count_devices();
/// The device's address on its machine: "0000:1b:00.0". Throws kDevice.
std::string address_of(int device);
/// The memory of a device. Throws kDevice.
DeviceMemory memory_of(int device);
/// Throws kDevice.
DeviceFacts facts_of(int device);

}  // namespace megalith::cuda
