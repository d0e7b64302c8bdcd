#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace megalith {

/// Zeroed memory of its own pages, in large ones where the system has them (asked for before the first touch:
/// random reads of a table then miss the TLB much less). Pages that were never written cost nothing. Throws
/// std::bad_alloc.
class HugePages {
 public:
  static constexpr size_t kLargePage = size_t{1} << 21;
  HugePages() = default;
  explicit HugePages(size_t bytes);
  ~HugePages();
  HugePages(HugePages&& other) noexcept { swap(other); }
  HugePages& operator=(HugePages&& other) noexcept {
    swap(other);
    return *this;
  }
  HugePages(const HugePages&) = delete;
  HugePages& operator=(const HugePages&) = delete;

  /// As an array of T, which must be fine with all bytes zero. Starts at a multiple of 2 MiB when that large.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

  /// Has large page `number` backed by memory of its own. For what is read before it is written: the first
  /// read would get a page of zeros that all share, and the first write then one that every thread's core has
  /// to be told of. Does not change it; any number of threads at once.
  void touch(size_t number) const {
    __atomic_fetch_or(static_cast<char*>(data_) + number * kLargePage, char{0}, __ATOMIC_RELAXED);
  }
  size_t large_pages() const { return (bytes_ + kLargePage - 1) / kLargePage; }

 private:
  void swap(HugePages& other) noexcept {
    std::swap(map_, other.map_);
    std::swap(mapped_, other.mapped_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  void* map_ = nullptr;
  size_t mapped_ = 0;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace megalith
