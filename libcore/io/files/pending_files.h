#pragma once

#include <cstddef>
#include <cstdint>

namespace megalith {

/// Files that are still being written, as a ReadableFile sees them: it follows their writer and waits for
/// bytes that are not there yet.
class PendingFiles {
 public:
  /// The number of the file that `fd` has open; kNone if it is not one of these.
  static constexpr size_t kNone = SIZE_MAX;
  virtual size_t find(int fd) const = 0;
  /// Waits until byte `offset` of a file is there. Then either copies some of the `bytes` from there on to
  /// `out` and returns their number, or returns how many of them can be read in the file. kIo if no more
  /// bytes will come.
  struct Served {
    size_t copied, in_file;
  };
  virtual Served serve(size_t file, uint64_t offset, void* out, size_t bytes) = 0;

 protected:
  ~PendingFiles() = default;  // owned by the writer
};

}  // namespace megalith
