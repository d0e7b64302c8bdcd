#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libcore/base/machine/huge_pages.h"
#include "libcore/io/files/direct_file.h"
#include "libcore/threads/serial_executor.h"

namespace megalith {

/// Appends to a file around the page cache (see DirectFile), in large buffers that its own thread writes, so
/// that little is left to sync at the end. Memory: 2 MiB, and 2 MiB more once the writer has had to wait for
/// the disk. Throws kIo, at the latest from flush() or finish_sync().
class DirectWriter {
 public:
  /// A writer for the open file `fd` of `size` bytes; `fd` still belongs to the caller, and `path` is for
  /// messages. Null if the file cannot be written around the page cache, or if no thread or memory is
  /// available.
  static std::unique_ptr<DirectWriter> open(int fd, std::string path, uint64_t size);
  DirectWriter(const DirectWriter&) = delete;  // its destructor drops bytes neither flushed nor synced
  DirectWriter& operator=(const DirectWriter&) = delete;

  void append(const void* data, size_t bytes);
  /// Overwrites bytes that were appended.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// Writes out all bytes, so that they can be read from the file.
  void flush();
  /// Starts the sync that finish_sync() waits for; the caller can do other work in between. After it,
  /// append() and write_at() must not be called.
  void start_sync();
  /// Waits until all bytes are in the file and survive a power failure.
  void finish_sync();

 private:
  /// With buffers of half this size, preprocess takes 3 % more time.
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  static constexpr size_t kBuffers = 4;  // together they fill two large pages

  /// The `bytes` bytes of the file from `offset` on, held in `memory`.
  struct Buffer {
    uint64_t offset;
    char* memory;
    size_t bytes;
  };
  DirectWriter(std::unique_ptr<DirectFile> file, int fd, uint64_t size);
  void hand_over();
  char* take_free();

  std::unique_ptr<DirectFile> file_;
  HugePages memory_;
  // Free buffers, in memory_. The one freed last is used first: it is still in the CPU caches.
  std::vector<char*> free_;
  /// The end of the file, beginning at a block boundary, since direct I/O writes whole blocks. Its first
  /// bytes may already be in the file.
  Buffer filled_;
  bool syncing_ = false;
  SerialExecutor thread_;
};

}  // namespace megalith
