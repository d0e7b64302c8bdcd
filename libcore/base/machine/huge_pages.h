#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace megalith {

/// Zeroed memory in pages of its own, which are large pages if the system has them. Random reads of a table
/// in large pages miss the TLB much less often. (The system must be asked for large pages before the memory
/// is first touched.) Pages that were never written use no memory. Throws std::bad_alloc.
class HugePages {
 public:
  static constexpr size_t kLargePage = size_t{1} << 21;
  /// Whether the system reserves the memory. kReserved: yes; the constructor throws std::bad_alloc if the
  /// system's limits do not allow for all of it. kLazy: no; for tables of which most parts are never touched.
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

  /// The memory as an array of T, for which all bytes zero must be a valid value. Memory of 2 MiB or more
  /// starts at a multiple of 2 MiB.
  template <class T>
  std::span<T> as() const {
    return {static_cast<T*>(data_), bytes_ / sizeof(T)};
  }

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
