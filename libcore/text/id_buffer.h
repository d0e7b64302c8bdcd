#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libcore/base/byte_buffer.h"

namespace megalith {

/// Consecutive token ids, each in 2 bytes (unsigned) or 4, as in a dataset's file. In memory they are stored
/// in parts, so that growing moves nothing and no part need be as large as the longest text.
class IdBuffer {
 public:
  static constexpr size_t kPartBytes = size_t{1} << 18;

  /// `width`: bytes of an id, 2 or 4. `part_bytes`: bytes of a part, unless a call needs more.
  explicit IdBuffer(size_t width, size_t part_bytes = kPartBytes) : width_(width), part_bytes_(part_bytes) {}
  IdBuffer(IdBuffer&& other) noexcept = default;
  IdBuffer& operator=(IdBuffer&&) = delete;
  IdBuffer(const IdBuffer&) = delete;
  IdBuffer& operator=(const IdBuffer&) = delete;

  size_t width() const { return width_; }
  size_t size() const { return bytes_ / width_; }  // number of ids
  size_t bytes() const { return bytes_; }
  /// Bytes [from, to) in order, valid until the buffer is changed.
  std::vector<std::span<const char>> parts(size_t from, size_t to) const;
  std::vector<std::span<const char>> parts() const { return parts(0, bytes_); }
  /// All ids as one array.
  std::vector<int32_t> ids() const;
  /// Passes all ids to `take` in order, a part at a time. sizeof(Id) == width().
  template <class Id, class Take>
  void each_part(const Take& take) const {
    for (const ByteBuffer& part : parts_)
      take(std::span<const Id>(reinterpret_cast<const Id*>(part.data()), part.size() / sizeof(Id)));
  }

  void clear();
  void truncate(size_t ids);  // `ids`: the number of ids to keep, at most size()

  /// Throws kData when an id does not fit the width.
  void append(std::span<const int32_t> ids);

  /// For an encoder, which writes at most `max` ids to the place that extend() returns, and then calls
  /// finish() with the end of what it wrote. sizeof(Id) == width(). Throws std::bad_alloc.
  template <class Id>
  Id* extend(size_t max) {
    if (parts_.empty() || parts_.back().capacity() - parts_.back().size() < max * sizeof(Id))
      begin_part(max * sizeof(Id));
    return reinterpret_cast<Id*>(parts_.back().data() + parts_.back().size());
  }
  template <class Id>
  void finish(const Id* end) {
    ByteBuffer& part = parts_.back();
    const auto added = static_cast<size_t>(reinterpret_cast<const char*>(end) - (part.data() + part.size()));
    part.extend(added);
    bytes_ += added;
  }

 private:
  void begin_part(size_t min_bytes);

  std::vector<ByteBuffer> parts_;
  size_t width_, part_bytes_;
  size_t bytes_ = 0;  // bytes in all parts
};

}  // namespace megalith
