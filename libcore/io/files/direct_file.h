#pragma once

#include <cstddef>
#include <string>

#include "libcore/io/files/file_calls.h"

namespace megalith {

/// An open file that is opened a second time, to be written around the page cache: the system then neither
/// copies the bytes nor keeps their pages. 117 MiB on ext4 take 0.01 s of its time instead of 0.1 s (a
/// hundredth where a virtual machine's free memory goes back to its host), and a sync has little to wait for.
/// Throws kIo.
class DirectFile {
 public:
  static constexpr size_t kBlock = 4096;  // no disk asks for more

  /// `fd` still belongs to the caller; `path` is for messages.
  DirectFile(int fd, std::string path);
  ~DirectFile();
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  /// Whether it is written around the page cache. It is not if the file system cannot do it, or is not one of
  /// those on which it is known to be fast.
  bool is_direct() const { return direct_ >= 0; }
  /// Writes bytes at their place: whole blocks around the page cache; through it blocks that are shared with
  /// other bytes, small writes, and everything if there is no other way. Memory and place must be equal
  /// modulo kBlock.
  void write(const BytesToWrite& wish) const;
  /// Through the page cache.
  void write_cached(const BytesToWrite& wish) const { write_at_place(fd_, wish, path_); }
  void sync() const { sync_to_disk(fd_, path_); }
  const std::string& path() const { return path_; }

 private:
  void write_blocks(const BytesToWrite& wish) const;

  int fd_, direct_;
  std::string path_;
};

}  // namespace megalith
