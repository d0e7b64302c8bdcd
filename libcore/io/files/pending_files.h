#pragma once

#include <cstddef>
#include <cstdint>

namespace megalith {

/// Files that are still being written, for a ReadableFile that follows the writer: it waits for bytes that
/// are not written yet.
class PendingFiles {
 public:
  /// The number of the file that `fd` has open; kNone if that file is not one of these files.
  static constexpr size_t kNone = SIZE_MAX;
  virtual size_t find(int fd) const = 0;
  /// Waits until byte `offset` of the file is available. If it is in memory, copies at least one and at most
  /// `bytes` bytes to `out`; `copied` is their number. Otherwise `in_file` is the number of bytes, at most
  /// `bytes`, that the caller can read from the file. kIo if the byte will never come.
  struct Served {
    size_t copied, in_file;
  };
  virtual Served serve(size_t file, uint64_t offset, void* out, size_t bytes) = 0;

 protected:
  ~PendingFiles() = default;  // not deleted through this class: the writer owns the object
};

}  // namespace megalith
