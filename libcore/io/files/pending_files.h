#pragma once

#include <cstddef>
#include <cstdint>

namespace megalith {

/// Files that are still being written. A ReadableFile that reads one of them waits here for bytes that are
/// not written yet.
class PendingFiles {
 public:
  /// The number of the file that is open as `fd`; kNone if it is none of these files.
  static constexpr size_t kNone = SIZE_MAX;
  virtual size_t find(int fd) const = 0;
  /// Waits until byte `offset` of the file can be read. If it is in memory, copies at least one and at most
  /// `bytes` bytes to `out`; `copied` is their number. Otherwise `in_file` says how many bytes, at most
  /// `bytes`, the caller can read from the file. Throws kIo if the byte will never be written.
  struct Served {
    size_t copied, in_file;
  };
  virtual Served serve(size_t file, uint64_t offset, void* out, size_t bytes) = 0;

 protected:
  ~PendingFiles() = default;  // not virtual: objects are not deleted through this class
};

}  // namespace megalith
