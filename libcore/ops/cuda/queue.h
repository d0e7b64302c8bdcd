#pragma once

#include <exception>
#include <functional>
#include <mutex>

#include <stddef.h>

#include "libcore/ops/cuda/runtime.h"
#include "libcore/threads/last_wait.h"

namespace megalith::cuda {

/// What a Stream's native handle points to: a CUDA stream of one device and its scratch memory.
class Queue {
 public:
  /// Creates the stream on the current device. Throws kDevice.
  explicit Queue(const LastWaits& waits);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();

  cudaStream_t stream() const { return stream_; }
  /// Returns at least `bytes` bytes of device memory, 256-byte aligned, for the work that is enqueued on this
  /// stream until the next call. If the memory must grow, waits for the stream first. Throws kDevice if there
  /// is not enough memory.
  void* workspace(size_t bytes);

  /// Calls `work` on the driver's thread when the stream gets there. If `work` throws, the error is kept:
  /// host work after it is not called, and later calls of enqueue() throw the error.
  void enqueue(std::function<void()> work);
  void rethrow_error() const;
  /// Waits until the stream's work is done, for destructors: if it takes too long, the process ends.
  void finish() const noexcept;

  static constexpr size_t kMinWorkspace = size_t{32} << 20;  // what cuBLASLt prefers on Hopper, in bytes

 private:
  struct HostWork;
  void call(const HostWork&);

  LastWaits waits_;
  cudaStream_t stream_ = nullptr;
  void* workspace_ = nullptr;
  size_t workspace_bytes_ = 0;
  mutable std::mutex mutex_;  // guards error_
  std::exception_ptr error_;  // the first error of host work
};

/// Allocates device memory. If there is not enough, throws kDevice with the bytes wanted and the bytes left.
void* allocate_device(size_t bytes);

}  // namespace megalith::cuda
