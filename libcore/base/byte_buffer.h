#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

namespace megalith {

/// A byte array that grows at the end. Unlike std::string, a large buffer grows by moving its pages, without
/// a copy, so that a line of a gigabyte is never in memory twice. Unused capacity costs no memory until it is
/// written.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  ~ByteBuffer() { release(); }
  ByteBuffer(ByteBuffer&& other) noexcept { swap(other); }
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;

  char* data() { return data_; }
  const char* data() const { return data_; }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  void clear() { size_ = 0; }
  void truncate(size_t size) { size_ = size; }  // `size` must be at most size()

  void append(const char* bytes, size_t n) {
    if (n > 0) std::memcpy(extend(n), bytes, n);
  }

  /// Adds n bytes at the end and returns where they begin; the caller writes them.
  char* extend(size_t n) {
    if (capacity_ - size_ < n) reserve(size_ + n > 2 * capacity_ ? size_ + n : 2 * capacity_);
    size_ += n;
    return data_ + size_ - n;
  }

  /// Throws std::bad_alloc.
  void reserve(size_t capacity) {
    if (capacity > capacity_) grow(capacity);
  }

 private:
  void grow(size_t capacity);
  void release();
  void swap(ByteBuffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace megalith
