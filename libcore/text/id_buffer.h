#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/base/buffer_pool.h"
#include "libcore/base/byte_buffer.h"

namespace megalith {

/// Token ids one after the other, each in 2 bytes (unsigned) or 4, as a dataset's file holds them. In memory
/// they are in parts, so that it neither moves when there are more nor is measured by the longest text.
class IdBuffer {
 public:
  /// `width`: 2 or 4. The pool, which must outlive this, lends the memory of the parts; without one each has
  /// its own.
  explicit IdBuffer(size_t width, BufferPool* pool = nullptr) : pool_(pool), width_(width) {}
  ~IdBuffer() { clear(); }
  IdBuffer(IdBuffer&& other) noexcept = default;
  IdBuffer& operator=(IdBuffer&&) = delete;
  IdBuffer(const IdBuffer&) = delete;
  IdBuffer& operator=(const IdBuffer&) = delete;

  size_t width() const { return width_; }
  size_t size() const { return bytes_ / width_; }  // ids
  size_t bytes() const { return bytes_; }
  /// Bytes [from, to) in order, until the buffer is changed.
  std::vector<std::span<const char>> parts(size_t from, size_t to) const;
  std::vector<std::span<const char>> parts() const { return parts(0, bytes_); }
  /// All ids as one array.
  std::vector<int32_t> ids() const;
  /// `take` gets all ids in order. sizeof(Id) == width().
  template <class Id, class Take>
  void each_part(const Take& take) const {
    for (const Part& part : parts_)
      take(std::span<const Id>(reinterpret_cast<const Id*>(part.data), part.bytes / sizeof(Id)));
  }

  void clear();
  void truncate(size_t ids);  // at most size()

  /// Throws kData when an id does not fit the width.
  void append(std::span<const int32_t> ids);

  /// For an encoder: writes at most `max` ids to what extend() returns, then says with finish() where they
  /// end. sizeof(Id) == width(). Throws std::bad_alloc.
  template <class Id>
  Id* extend(size_t max) {
    if (parts_.empty() || parts_.back().capacity - parts_.back().bytes < max * sizeof(Id))
      begin_part(max * sizeof(Id));
    return reinterpret_cast<Id*>(parts_.back().data + parts_.back().bytes);
  }
  template <class Id>
  void finish(const Id* end) {
    Part& part = parts_.back();
    const auto bytes = static_cast<size_t>(reinterpret_cast<const char*>(end) - part.data);
    bytes_ += bytes - part.bytes;
    part.bytes = bytes;
  }

 private:
  struct Part {
    char* data = nullptr;
    size_t bytes = 0, capacity = 0;
    BufferPool::Buffer lent = {};  // where `data` is, or:
    ByteBuffer own = {};
  };
  void begin_part(size_t min_bytes);
  void end_part();

  std::vector<Part> parts_;
  BufferPool* pool_;
  size_t width_;
  size_t bytes_ = 0;  // of all parts
};

}  // namespace megalith
