#include "libcore/ops/cuda/queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include <cuda_runtime_api.h>

#include "libcore/base/error.h"
#include "libcore/ops/backend/workspace_sizes.h"
#include "libcore/ops/cuda/device_failure.h"

namespace megalith::cuda {

void* allocate_device(size_t bytes) {
  constexpr size_t kMin = 256;  // at least this many bytes, so that even an empty tensor has an address
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, std::max(kMin, bytes));
  if (status == cudaSuccess) return block;
  size_t left = 0, all = 0;
  cudaGetLastError();  // clears the error, which the next launch would report otherwise
  cudaMemGetInfo(&left, &all);
  fail_with(status, concat("allocate ", bytes, " bytes, of ", all, " bytes ", left, " are free"));
}

Queue::Queue(const HostWaits& waits, Priority priority) : waits_(waits) {
  int least = 0, greatest = 0;
  require_success(cudaDeviceGetStreamPriorityRange(&least, &greatest), "ask for priorities of streams");
  // 0, the priority that CUDA gives by default, is the lowest. So normal streams get the next higher one.
  const int wanted = priority == Priority::kLow ? least : std::max(greatest, least - 1);
  require_success(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, wanted), "make a stream");
}

Queue::~Queue() {
  finish();
  free_outgrown();
  cudaFree(workspace_);
  if (staging_ != nullptr) cudaFreeHost(staging_);
  cudaStreamDestroy(stream_);
}

/// Polls, since CUDA's own wait has no limit. After a moment it sleeps between polls, to leave the core to
/// others.
void Queue::finish(bool drop) const noexcept {
  if (is_watched()) finish_watched(drop);
  using Clock = std::chrono::steady_clock;
  constexpr auto kMoment = std::chrono::milliseconds(1);
  const Clock::time_point begin = Clock::now();
  while (!is_done()) {
    const Clock::duration waited = Clock::now() - begin;
    if (waited > waits_.last.limit()) waits_.last.end_process("the work of a CUDA stream");
    if (waited < kMoment)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kMoment / 20);
  }
}

void Queue::finish_watched(bool drop) const noexcept {
  if (drop) return waits_.watch->give_up();
  try {
    waits_.watch->await([this] { return is_done(); });
  } catch (...) {  // await() has ended the work
  }
}

void* Queue::workspace(size_t bytes) {
  if (bytes <= workspace_bytes_) return workspace_;
  require_not_recording("allocate scratch memory");
  if (workspace_ != nullptr) outgrown_.push_back(std::exchange(workspace_, nullptr));
  workspace_bytes_ = 0;
  if (!outgrown_.empty() && !is_watched()) wait();
  const size_t wanted = std::max(bytes, kMinWorkspace);
  workspace_ = allocate_device(wanted);
  workspace_bytes_ = wanted;
  return workspace_;
}

void Queue::require_not_recording(const char* what) const {
  if (recording_) fail(ErrorKind::kInternal, "cuda: recorded work cannot ", what);
}

void Queue::upload_later(void* to, const void* from, size_t bytes) {
  require_not_recording("copy from the host");
  require_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy from the host");
}

void Queue::upload(void* to, const void* from, size_t bytes) {
  require_not_recording("copy from the host");
  if (bytes > 0 && staging_ == nullptr) {
    void* block = nullptr;
    require_success(cudaMallocHost(&block, kStagingBytes), "get page-locked host memory");
    staging_ = static_cast<std::byte*>(block);
  }
  while (bytes > 0) {
    if (staged_ == kStagingBytes) wait();
    const size_t piece = std::min(bytes, kStagingBytes - staged_);
    std::memcpy(staging_ + staged_, from, piece);
    require_success(cudaMemcpyAsync(to, staging_ + staged_, piece, cudaMemcpyHostToDevice, stream_),
                    "copy from the host");
    staged_ += piece;
    bytes -= piece;
    to = static_cast<std::byte*>(to) + piece;
    from = static_cast<const std::byte*>(from) + piece;
  }
}

void Queue::wait() {
  if (is_watched()) waits_.watch->await([this] { return is_done(); });
  require_success(cudaStreamSynchronize(stream_), "wait for a stream");
  staged_ = 0;
  if (!outgrown_.empty() && (!is_watched() || waits_.is_idle())) free_outgrown();
  rethrow_error();
}

void Queue::free_outgrown() noexcept {
  for (void* const block : std::exchange(outgrown_, {})) cudaFree(block);
}

void Queue::await(cudaEvent_t event) const {
  if (is_watched()) waits_.watch->await([event] { return cudaEventQuery(event) != cudaErrorNotReady; });
  require_success(cudaEventSynchronize(event), "wait for an event");
}

struct Queue::HostWork {
  Queue* queue;
  std::function<void()> run;
};

void Queue::enqueue(std::function<void()> work) {
  rethrow_error();
  require_not_recording("enqueue work of the host");
  auto* const host_work = new HostWork{this, std::move(work)};
  const auto call_and_free = [](void* data) {
    const std::unique_ptr<HostWork> mine(static_cast<HostWork*>(data));
    mine->queue->call(*mine);
  };
  const cudaError_t status = cudaLaunchHostFunc(stream_, call_and_free, host_work);
  if (status != cudaSuccess) delete host_work;  // CUDA will not call call_and_free
  require_success(status, "enqueue work of the host");
}

void Queue::call(const HostWork& work) {
  {
    const std::lock_guard lock(mutex_);
    if (error_) return;
  }
  try {
    work.run();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
}

void Queue::rethrow_error() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

}  // namespace megalith::cuda
