#pragma once

#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace megalith {

/// Memory in buffers of one size that goes round among threads, so that no more are ever touched than were
/// taken at the same time. A thread gets the buffer that it gave back last, because that one is in the caches
/// of its core, else the last one that any thread gave back. Any number of threads at once.
///
/// It pays in preprocess with two workers: one buffer for each batch on its way grew to the longest text that
/// came by (4 to 7 MiB more memory, each growth moving pages that the other worker used), and writing to what
/// was in the other core's caches took 4 ms of 460.
class BufferPool {
 public:
  static constexpr size_t kBytes = size_t{1} << 18;  // bytes

  BufferPool() = default;
  ~BufferPool();  // all buffers must have been given back, or be out of use
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  struct Buffer {
    char* data = nullptr;       // kBytes bytes, whatever is in them
    std::thread::id user = {};  // who took it last
  };
  Buffer take();  // throws std::bad_alloc
  /// Keeps the memory of kKept buffers that nobody has; that of more goes back to the system.
  void give(Buffer buffer) noexcept;

  static constexpr size_t kKept = 32;  // buffers: 8 MiB

 private:
  void map_more();

  std::mutex mutex_;
  std::vector<char*> maps_;           // of kBuffersOfMap buffers
  std::vector<Buffer> kept_, empty_;  // that nobody has, with memory and without
};

}  // namespace megalith
