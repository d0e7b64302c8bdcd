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

/// Appends to a file around the page cache (see DirectFile), in large buffers and by a thread of its own, so
/// that the end of the file has little left to be synced. Memory: 2 MiB, and 2 more once the disk was late.
/// Throws kIo, at the latest from flush() or finish_sync().
class DirectWriter {
 public:
  /// For a file that holds `size` bytes, open as `fd`, which stays the caller's; `path` is for messages.
  /// Nothing where the file cannot be written so, or no thread or memory can be had.
  static std::unique_ptr<DirectWriter> open(int fd, std::string path, uint64_t size);
  DirectWriter(const DirectWriter&) = delete;  // bytes that were neither flushed nor synced are lost
  DirectWriter& operator=(const DirectWriter&) = delete;

  void append(const void* data, size_t bytes);
  /// Writes over bytes that were appended.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// Then all bytes can be read in the file.
  void flush();
  /// Begins what finish_sync() waits for, so that the caller can do other work meanwhile. Nothing more may be
  /// appended or written.
  void start_sync();
  /// Waits until all bytes are in the file and survive a power failure.
  void finish_sync();

 private:
  /// Not half of it, because preprocess then takes 3 % more time.
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
  // buffers of memory_; the one left last is taken first, because it is in the caches
  std::vector<char*> free_;
  /// The file's end, from a block's begin, because direct I/O takes whole blocks; part of it may be in the
  /// file already.
  Buffer filled_;
  bool syncing_ = false;
  SerialExecutor thread_;
};

}  // namespace megalith
