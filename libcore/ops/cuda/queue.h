#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "libcore/ops/backend/device_group.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/runtime.h"
#include "libcore/tensor/device.h"
#include "libcore/threads/last_wait.h"

namespace megalith::cuda {

/// How the host waits for the streams of a backend.
struct HostWaits {
  LastWaits last;
  DeviceWatch* watch = nullptr;        // where the device may wait for other ranks; null: it does not
  std::function<bool()> is_idle = {};  // whether the work of all of the backend's streams is done
};

/// What a Stream's native handle points to: a CUDA stream of one device, its scratch memory, and page-locked
/// host memory through which its copies to the device pass.
class Queue {
 public:
  enum class Priority { kNormal, kLow };
  /// Creates the stream on the current device. `waits` must outlive the object. Throws kDevice.
  explicit Queue(const HostWaits& waits, Priority priority = Priority::kNormal);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  cudaStream_t stream() const { return stream_; }
  /// Returns at least `bytes` bytes of device memory, 256-byte aligned, for the work that is enqueued on this
  /// stream until the next call. If the memory must grow, waits for the stream first. Where the device may
  /// wait for other ranks, it instead keeps the smaller block until the device is idle, since CUDA waits for
  /// all of the device's work to free memory. Throws kDevice if there is not enough memory.
  void* workspace(size_t bytes);

  /// Copies host memory to the device in the stream's order. `from` has been read on return. A copy of
  /// pageable memory may wait for the stream, as the driver must stage it; this one waits only if more than
  /// kStagingBytes have been uploaded since the last wait(). Throws kDevice.
  void upload(void* to, const void* from, size_t bytes);
  /// Copies page-locked memory to the device when the stream gets there: until then it must not change.
  /// Throws kDevice.
  void upload_later(void* to, const void* from, size_t bytes);
  /// Waits until the stream's work is done. Throws kDevice, and the error of host work.
  void wait();

  /// Calls `work` on the driver's thread when the stream gets there. If `work` throws, the error is kept:
  /// host work after it is not called, and later calls of enqueue() throw the error.
  void enqueue(std::function<void()> work);
  void rethrow_error() const;
  /// Sets whether the stream's work is recorded to be repeated. Uploads, host work and larger scratch memory
  /// then throw kInternal: what is repeated would use memory that has another use by then.
  void set_recording(bool recording) { recording_ = recording; }
  bool is_watched() const { return waits_.watch != nullptr; }
  /// Waits for a record of an event on this stream. Throws kDevice.
  void await(cudaEvent_t) const;
  bool is_done() const { return cudaStreamQuery(stream_) != cudaErrorNotReady; }
  /// Waits until the stream's work is done, for destructors: if it takes too long, the process ends. With
  /// `drop`, work that waits for other ranks is ended first.
  void finish(bool drop = false) const noexcept;

 private:
  struct HostWork;
  void call(const HostWork&);
  void finish_watched(bool drop) const noexcept;
  void free_outgrown() noexcept;
  void require_not_recording(const char* what) const;

  const HostWaits& waits_;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  std::vector<void*> outgrown_;   // former workspaces, not yet freed
  std::byte* staging_ = nullptr;  // page-locked host memory, kStagingBytes; null until the first upload
  size_t staged_ = 0;             // bytes of it that copies under way may still read
  bool recording_ = false;
  mutable std::mutex mutex_;  // guards error_
  std::exception_ptr error_;  // the first error of host work
};

/// That of a stream which a CUDA backend made.
inline Queue& queue_of(const Stream& stream) {
  return *static_cast<Queue*>(stream.native());
}

/// Allocates device memory. If there is not enough, throws kDevice with the bytes wanted and the bytes left.
void* allocate_device(size_t bytes);

}  // namespace megalith::cuda
