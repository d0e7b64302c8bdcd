#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/emulator/controls.h"
#include "tests/emulator/fault.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/report.h"
#include "tests/emulator/streams.h"

// NOLINTBEGIN: names and signatures are CUDA's
megalith::emulator::KernelIndex threadIdx, blockIdx, blockDim, gridDim;

namespace megalith::emulator {
namespace {

/// One record of an event. An event may be recorded again, on another stream, while streams still wait for
/// this.
struct EventRecord {
  std::atomic<bool> done = false;
  double time = 0;
  // Only where the event was captured, so that no host may wait for it:
  std::shared_ptr<Capture> capture = nullptr;
  std::vector<size_t> ends = {};
};

DeviceMemory& memory() {
  return DeviceMemory::get();
}
Streams& streams() {
  return Streams::get();
}

/// The devices of the machine that the process sees, as CUDA_VISIBLE_DEVICES chooses them, by their numbers
/// there.
std::vector<int> visible_devices() {
  std::vector<int> visible;
  const char* const chosen = std::getenv("CUDA_VISIBLE_DEVICES");
  if (chosen == nullptr) {
    for (int device = 0; device < controls().devices; ++device) visible.push_back(device);
    return visible;
  }
  std::istringstream list(chosen);
  for (std::string word; std::getline(list, word, ',');) {
    const int device = std::atoi(word.c_str());
    if (device >= controls().devices) break;  // as CUDA does: what follows an unknown device is not seen
    visible.push_back(device);
  }
  return visible;
}
int device_count() {
  return static_cast<int>(visible_devices().size());
}

/// The chosen device's number on the machine.
int chosen_on_machine() {
  const std::vector<int> visible = visible_devices();
  const auto chosen = static_cast<size_t>(chosen_device());
  return chosen < visible.size() ? visible[chosen] : -1;
}

size_t taken_by_others() {
  return chosen_on_machine() == controls().taken_device ? controls().taken : 0;
}

/// A process has a context on a device as soon as it uses it, which takes memory there. Its first use of each
/// device is a line of the file MEGALITH_EMULATOR_CONTEXTS: the device's number on the machine.
void note_context() {
  static const char* const path = std::getenv("MEGALITH_EMULATOR_CONTEXTS");
  if (path == nullptr) return;
  static std::mutex mutex;
  static std::set<int> noted;
  const std::lock_guard lock(mutex);
  const int device = chosen_on_machine();
  if (noted.insert(device).second) std::ofstream(path, std::ios::app) << device << std::endl;
}

cudaError_t enqueue(cudaStream_t stream, const std::function<void()>& work) {
  streams().enqueue(stream, work);
  return health();
}

void require_memory_of(cudaStream_t stream, const void* address, size_t bytes, const char* what) {
  memory().require_block(address, bytes, {streams().device_of(stream), what});
}

cudaError_t copy_in(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  ++controls().counts.copies_in;
  memory().require_host(from, "cudaMemcpyAsync from");
  require_memory_of(stream, to, bytes, "cudaMemcpyAsync to");
  const bool captured = stream != nullptr && stream->capture;  // reads the memory whenever it runs
  if (captured || PageLockedMemory::get().owns(from))
    return enqueue(stream, [=] {
      if (!captured && !PageLockedMemory::get().owns(from))
        end_with("a copy from page-locked memory that was freed");
      std::memcpy(to, from, bytes);
    });
  // Pageable memory is copied before the call returns, for which a driver may wait for the stream.
  ++controls().counts.waits;
  auto copied = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  return enqueue(stream, [=] { std::memcpy(to, copied->data(), bytes); });
}

cudaError_t copy_out(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  ++controls().counts.copies_out;
  require_memory_of(stream, from, bytes, "cudaMemcpyAsync from");
  memory().require_host(to, "cudaMemcpyAsync to");
  return enqueue(stream, [=, locked = PageLockedMemory::get().owns(to)] {
    if (locked && !PageLockedMemory::get().owns(to)) end_with("a copy to page-locked memory that was freed");
    std::memcpy(to, from, bytes);
  });
}

cudaError_t copy_within(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  require_memory_of(stream, from, bytes, "cudaMemcpyAsync from");
  require_memory_of(stream, to, bytes, "cudaMemcpyAsync to");
  return enqueue(stream, [=] { std::memmove(to, from, bytes); });
}

}  // namespace
}  // namespace megalith::emulator

using namespace megalith::emulator;

struct EmulatedEvent {
  int device;
  bool timed;
  std::shared_ptr<EventRecord> last = nullptr;  // null: it was never recorded
  int asked = 0;                                // how often it was not done
  bool is_done() const { return !last || last->done; }
  bool is_captured() const { return last && last->capture; }
};

namespace megalith::emulator {
namespace {

bool is_captured(cudaStream_t stream) {
  return stream != nullptr && stream->capture;
}

/// A captured event joins the stream that waits for it to the capture.
cudaError_t wait_in_capture(cudaStream_t stream, const EventRecord& record) {
  if (stream == nullptr || record.capture != capture_of_thread()) return cudaErrorInvalidValue;
  stream->capture = record.capture;
  record.capture->wait(stream, record.ends);
  return health();
}

/// Also to a thread that does not capture.
cudaError_t refuse_captured(const EmulatedStream& stream) {
  stream.capture->break_off();
  return cudaErrorStreamCaptureUnsupported;
}

cudaError_t refuse_captured(const EmulatedEvent& event) {
  event.last->capture->break_off();
  return cudaErrorCapturedEvent;
}

}  // namespace
}  // namespace megalith::emulator

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorECCUncorrectable:
      return "uncorrectable ECC error encountered";
    case cudaErrorIllegalAddress:
      return "an illegal memory access was encountered";
    case cudaErrorLaunchFailure:
      return "unspecified launch failure";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "another error";
  }
}
cudaError_t cudaGetLastError() {
  return health();
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = device_count();
  return health();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
  *properties = {.name = "emulated device",
                 .totalGlobalMem = controls().memory,
                 .major = 8,
                 .minor = 0,
                 .multiProcessorCount = 1,
                 .l2CacheSize = 0,
                 .ECCEnabled = 1};
  return health();
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 0;
  return health();
}
cudaError_t cudaDeviceGetPCIBusId(char* address, int bytes, int device) {
  if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
  std::snprintf(address, static_cast<size_t>(bytes), "0000:%02x:00.0",
                static_cast<unsigned>(visible_devices()[static_cast<size_t>(device)]));
  return health();
}
cudaError_t cudaSetDevice(int device) {
  streams().require_no_host_function();
  if (device < 0 || device >= device_count()) return cudaErrorInvalidDevice;
  chosen_device() = device;
  note_context();
  return health();
}
cudaError_t cudaMemGetInfo(size_t* left, size_t* all) {
  note_context();
  *all = controls().memory;
  *left = *all - memory().used(chosen_device()) - taken_by_others();
  return health();
}
cudaError_t cudaMalloc(void** block, size_t bytes) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  streams().require_no_host_function();
  ++controls().counts.allocations;
  note_context();
  if (health() != cudaSuccess) return health();
  *block = refuses_memory() ? nullptr : memory().allocate(bytes, chosen_device());
  return *block == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* block) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (block == nullptr) return cudaSuccess;
  streams().finish_all(memory().device_of(block));
  memory().release(block);
  return health();
}
cudaError_t cudaMallocHost(void** block, size_t bytes) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  streams().require_no_host_function();
  ++controls().counts.allocations;
  *block = PageLockedMemory::get().allocate(bytes);
  return health();
}
cudaError_t cudaFreeHost(void* block) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (block != nullptr) PageLockedMemory::get().release(block);
  return health();
}
cudaError_t cudaHostRegister(void* block, size_t bytes, unsigned) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  memory().require_host(block, "cudaHostRegister");
  return PageLockedMemory::get().lock(block, bytes) ? health() : cudaErrorMemoryAllocation;
}
cudaError_t cudaHostUnregister(void* block) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  PageLockedMemory::get().release(block);
  return health();
}
cudaError_t cudaMemset(void* block, int value, size_t bytes) {
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  require_memory_of(nullptr, block, bytes, "cudaMemset");
  return enqueue(nullptr, [=] { std::memset(block, value, bytes); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (kind == cudaMemcpyHostToDevice) return copy_in(to, from, bytes, stream);
  if (kind == cudaMemcpyDeviceToHost) return copy_out(to, from, bytes, stream);
  return copy_within(to, from, bytes, stream);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  note_context();
  *stream = new EmulatedStream{.device = chosen_device()};
  streams().add(*stream);
  return health();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return health();
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  streams().remove(stream);
  delete stream;
  return health();
}
/// The device works as late as it may: while a host asks.
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (is_captured(stream)) return refuse_captured(*stream);
  if (controls().never_done || !streams().advance(stream)) return cudaErrorNotReady;
  ++controls().counts.waits;
  return health();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (is_captured(stream)) return refuse_captured(*stream);
  ++controls().counts.waits;
  streams().finish(stream);
  return health();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->is_captured()) return wait_in_capture(stream, *event->last);
  if (is_captured(stream) && event->last) {  // of work that the graph would not repeat
    stream->capture->break_off();
    return cudaErrorStreamCaptureIsolation;
  }
  streams().enqueue_event(stream, [record = event->last](double& clock) {
    if (!record) return true;
    if (!record->done) return false;
    clock = std::max(clock, record->time);
    return true;
  });
  return health();
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, void (*work)(void*), void* data) {
  ++controls().counts.host_functions;
  streams().enqueue_host_function(stream, [=] { work(data); });
  return health();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  ++controls().counts.events;
  note_context();
  *event = new EmulatedEvent{.device = chosen_device(), .timed = (flags & cudaEventDisableTiming) == 0};
  return health();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (event->device != streams().device_of(stream)) return cudaErrorInvalidResourceHandle;
  event->last = std::make_shared<EventRecord>();
  if (is_captured(stream)) {
    event->last->capture = stream->capture;
    event->last->ends = stream->capture->ends_of(stream);
    return health();
  }
  streams().enqueue_event(stream, [record = event->last](double& clock) {
    record->time = clock;
    record->done = true;
    return true;
  });
  return health();
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->is_captured()) return refuse_captured(*event);
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  if (!event->is_done()) ++controls().counts.waits;
  streams().run_until([event] { return event->is_done(); });
  return health();
}
/// The device works as late as it may: only for a host that asks again and again.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->is_captured()) return refuse_captured(*event);
  if (const cudaError_t refused = refuse_in_capture(); refused != cudaSuccess) return refused;
  constexpr int kPatience = 100;
  if (!event->is_done() && ++event->asked >= kPatience)
    streams().advance([event] { return event->is_done(); });
  if (!event->is_done()) return cudaErrorNotReady;
  event->asked = 0;
  return health();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  if (begin->device != end->device) return cudaErrorInvalidResourceHandle;
  for (const cudaEvent_t event : {begin, end}) {
    if (!event->timed || !event->last) return cudaErrorInvalidResourceHandle;
    if (!event->is_done()) return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>(1e3 * (end->last->time - begin->last->time));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return health();
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int bytes) {
  return bytes <= 99 << 10 ? cudaSuccess : cudaErrorInvalidValue;
}
// NOLINTEND

namespace megalith::cuda {

void run_grid(cudaStream_t stream, int64_t blocks, int threads, size_t shared, std::function<void()> kernel) {
  constexpr int64_t kMaxBlocks = 0x7fffffff;
  if (blocks > kMaxBlocks) end_with("a grid of " + std::to_string(blocks) + " blocks");
  streams().require_chosen(stream);
  ++controls().counts.kernels;
  enqueue(stream, [=, kernel = std::move(kernel)] {
    if (next_kernel_fails()) return;
    const bool backwards = controls().order % 2 != 0;
    EmulatedBlock& block = EmulatedBlock::running();
    block.backwards = backwards;
    blockDim.x = static_cast<unsigned>(threads);
    gridDim.x = static_cast<unsigned>(blocks);
    for (int64_t i = 0; i < blocks; ++i) {
      blockIdx.x = static_cast<unsigned>(backwards ? blocks - 1 - i : i);
      block.run(threads, shared, kernel);
    }
  });
}

}  // namespace megalith::cuda
