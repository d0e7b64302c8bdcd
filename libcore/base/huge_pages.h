#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace megalith {

/// Zeroed memory in pages of its own: large ones where the system has them, because random reads of a table
/// then miss the TLB much less (they must be asked for before the first touch). Pages that were never written
/// cost nothing. Throws std::bad_alloc.
class HugePages {
 public:
  static constexpr size_t kLargePage = size_t{1} << 21;
  /// kReserved: std::bad_alloc at once where the system's own bounds have no room for all of it. kLazy:
  /// nothing is reserved, because most of a table is never touched.
  enum class Backing : uint8_t { kLazy, kReserved };
  HugePages() = default;
  explicit HugePages(size_t bytes, Backing backing = Backing::kLazy);
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

  /// Backs large page `number` with memory of its own, by a write that changes nothing. For tables that are
  /// read before they are written: the first read would map the system's shared page of zeros, and the first
  /// write must then interrupt every core that has mapped it. Any number of threads at once.
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
