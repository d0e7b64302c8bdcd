#pragma once

#include <cstddef>
#include <cstdint>

namespace megalith {

/// Bytes that something else reads or makes, from beginning to end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Copies up to `room` (> 0) bytes to `out`; returns 0 only at the end.
  virtual size_t read(char* out, size_t room) = 0;
  /// The place in the file up to which bytes were taken, before decompression.
  virtual uint64_t consumed() const = 0;
  /// Bytes of memory that decompression holds now.
  virtual uint64_t memory() const = 0;
};

}  // namespace megalith
