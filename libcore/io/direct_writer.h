#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "libcore/base/huge_pages.h"
#include "libcore/io/file_calls.h"

namespace megalith {

/// Opens what `fd` has open once more, to write around the page cache; -1 where the file system cannot, or is
/// not one of those on which this is known to be fast.
int open_direct(int fd);
/// One file, opened both ways.
struct DirectFile {
  int direct, cached;
};
/// Writes bytes whose place, number and memory are multiples of 4096 around the page cache, through it where
/// the disk wants others. kIo with `path`.
void write_direct(const DirectFile& file, const BytesToWrite& wish, const std::string& path);

/// Appends to a file around the page cache, in pieces of 1 MiB and by a thread of its own: the system then
/// neither copies the bytes nor keeps their pages (117 MiB on ext4 take 0.01 s of its time instead of 0.1 s),
/// and the end of the file has little left to be synced. Memory: 2 MiB, and 6 MiB more for all writers
/// together once the disk was late. Throws kIo, at the latest from flush() or end().
class DirectWriter {
 public:
  /// For a file that holds `size` bytes, open as `fd`, which stays the caller's; `path` is for messages.
  /// Nothing where the file system cannot, or is not one of those on which this is known to be fast, or no
  /// thread or memory can be had.
  static std::unique_ptr<DirectWriter> open(int fd, std::string path, uint64_t size);
  ~DirectWriter();  // bytes that were neither flushed nor ended are lost
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;

  void append(const void* data, size_t bytes);
  /// Writes over bytes that were appended.
  void write_at(uint64_t offset, const void* data, size_t bytes);
  /// Then all bytes can be read in the file.
  void flush();
  /// Has the thread do what end() waits for. Nothing more may be appended or written.
  void begin_end();
  /// Then all bytes are in the file, survive a power failure, and the thread is gone.
  void end();

 private:
  static constexpr size_t kPiece = size_t{1} << 20;
  static constexpr size_t kGroup = 2;         // pieces of one large page
  static constexpr size_t kMostGroups = 4;    // of a writer; one is its own
  static constexpr size_t kAlignment = 4096;  // of places, sizes and memory: no disk asks for more

  /// The file's bytes from `offset` on, in `memory`.
  struct Piece {
    uint64_t offset;
    char* memory;
    size_t bytes;
  };
  DirectWriter(int fd, int direct, std::string path, uint64_t size);
  void hand_over();
  void add_group();
  void wait_until_written();
  void write_end();
  void serve();

  int fd_;
  int direct_;  // the same file
  std::string path_;
  HugePages memory_;
  Piece filled_;  // the end of the file, from a multiple of kAlignment; part of it may be in the file already

  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<Piece> waiting_;  // the first one is being written
  std::vector<char*> free_;    // pieces of memory_; the last one left is taken first, for it is in the caches
  size_t groups_ = 0;          // of memory_ that are used
  bool ending_ = false;        // the thread shall write what is left, sync, and end
  bool abandoned_ = false;     // it shall end at once
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace megalith
