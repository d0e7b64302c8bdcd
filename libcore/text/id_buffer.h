#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "libcore/base/byte_buffer.h"

namespace megalith {

/// Token ids end to end, each in 2 bytes (unsigned) or 4, as a dataset's file holds them.
class IdBuffer {
 public:
  explicit IdBuffer(size_t width) : width_(width) {}  // 2 or 4

  size_t width() const { return width_; }
  size_t size() const { return bytes_.size() / width_; }  // ids
  const ByteBuffer& bytes() const { return bytes_; }
  template <class Id>
  std::span<const Id> ids() const {  // sizeof(Id) == width()
    return {reinterpret_cast<const Id*>(bytes_.data()), size()};
  }
  void clear() { bytes_.clear(); }
  void reserve(size_t ids) { bytes_.reserve(ids * width_); }
  void truncate(size_t ids) { bytes_.truncate(ids * width_); }  // at most size()

  /// Throws kData when an id does not fit the width.
  void append(std::span<const int32_t> ids);

  /// For an encoder: writes at most `most` ids to what extend() returns, then says with finish() where they
  /// end. sizeof(Id) == width().
  template <class Id>
  Id* extend(size_t most) {
    return reinterpret_cast<Id*>(bytes_.extend(most * sizeof(Id)));
  }
  template <class Id>
  void finish(const Id* end) {
    bytes_.truncate(static_cast<size_t>(reinterpret_cast<const char*>(end) - bytes_.data()));
  }

 private:
  ByteBuffer bytes_;
  size_t width_;
};

}  // namespace megalith
