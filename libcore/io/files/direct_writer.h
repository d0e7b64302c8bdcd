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

/// Appends to a file around the page cache (see DirectFile). A thread of its own writes large buffers while
/// the caller continues, so little is left for a sync at the end. Memory: 2 MiB, and 2 MiB more once the
/// writer has had to wait for the disk. Throws kIo, at the latest from flush() or finish_sync().
class DirectWriter {
 public:
  /// A writer for the open file `fd` of `size` bytes; `fd` still belongs to the caller, and `path` is for
  /// messages. Null if the file cannot be written around the page cache, or if no thread or memory is
  /// available.
  static std::unique_ptr<DirectWriter> open(int fd, std::string path, uint64_t size);
  DirectWriter(const DirectWriter&) = delete;  // the destructor drops bytes that were not flushed or synced
  DirectWriter& operator=(const DirectWriter&) = delete;

  void append(const void* data, size_t bytes);
  /// Overwrites bytes that were appended before.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// Writes out all bytes, so that others can read them from the file.
  void flush();
  /// Starts a sync, so that the caller can do other work before it waits in finish_sync(). After
  /// start_sync(), append() and write_at() must not be called.
  void start_sync();
  /// Waits until all bytes are in the file and survive a power failure.
  void finish_sync();

 private:
  /// Size of a buffer. With half this size, preprocess takes 3 % longer.
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  static constexpr size_t kBuffers = 4;  // all buffers together fill two large pages

  /// A buffer at `memory` that holds the file's bytes [offset, offset + bytes).
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
  // Free buffers, in memory_. The buffer freed last is used first, since it is still in the CPU caches.
  std::vector<char*> free_;
  /// The buffer that is being filled with the end of the file. It begins at a block boundary, since direct
  /// I/O writes whole blocks, so its first bytes may already be in the file.
  Buffer filled_;
  bool syncing_ = false;
  SerialExecutor thread_{"the thread that writes a file"};
};

}  // namespace megalith
