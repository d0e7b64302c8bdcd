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

/// Appends to a file around the page cache (see DirectFile), in large buffers that a thread of its own
/// writes: little is left to sync at the end of the file. Memory: 2 MiB, and 2 more once the disk was late.
/// Throws kIo, at the latest from flush() or finish_sync().
class DirectWriter {
 public:
  /// For the open file `fd` of `size` bytes, which still belongs to the caller; `path` is for messages. Null
  /// if the file cannot be written so, or if a thread or memory is missing.
  static std::unique_ptr<DirectWriter> open(int fd, std::string path, uint64_t size);
  DirectWriter(const DirectWriter&) = delete;  // bytes that were neither flushed nor synced are lost
  DirectWriter& operator=(const DirectWriter&) = delete;

  void append(const void* data, size_t bytes);
  /// Overwrites bytes that were appended.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// Afterwards all bytes can be read in the file.
  void flush();
  /// Starts what finish_sync() waits for; the caller can do other work in between. Nothing may be appended or
  /// written afterwards.
  void start_sync();
  /// Waits until all bytes are in the file and survive a power failure.
  void finish_sync();

 private:
  /// With half of it, preprocess takes 3 % more time.
  static constexpr size_t kBufferBytes = size_t{1} << 20;
  static constexpr size_t kBuffers = 4;  // two large pages

  /// The file's bytes from `offset` on, in `memory`.
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
  // Buffers of memory_. The last one freed is taken first: it is in the caches.
  std::vector<char*> free_;
  /// The end of the file, from the start of a block on, as direct I/O writes whole blocks; part of it may be
  /// in the file already.
  Buffer filled_;
  bool syncing_ = false;
  SerialExecutor thread_;
};

}  // namespace megalith
