#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace megalith::emulator {

/// The devices' memory: pages of one reserved range. A device's pages are open while its code runs, and
/// closed while that of the host or of another device does. Fresh memory is full of NaN. Each block ends
/// where a closed page begins, and a freed block is never used again, so a kernel that runs over a block's
/// end or uses a freed one ends the process.
class DeviceMemory {
 public:
  static DeviceMemory& get();

  /// Null if the device has not that much memory left. Aligned to 256 bytes.
  void* allocate(size_t bytes, int device);
  /// Ends the process if `address` is not that of a block, or if bytes beside it were written.
  void release(void* address);
  /// The device of a block. Ends the process if `block` is not a block.
  int device_of(void* block) const;
  size_t used(int device) const;

  /// Whether the address is a device's.
  bool owns(const void* address) const;
  /// A use of device memory by a device's work.
  struct Use {
    int device;
    const char* what;  // names it in messages
  };
  /// Ends the process unless the bytes are within one block of the device.
  void require_block(const void* address, size_t bytes, const Use&) const;
  /// Ends the process if the address is a device's.
  void require_host(const void* address, const char* what) const;

  /// Opens the memory of one device for its code, and closes that of all others.
  void open(int device);
  void close() { open(kNone); }

 private:
  struct Block {
    size_t bytes;
    std::byte* first;  // of its pages
    size_t pages;      // bytes
    int device;
  };
  static constexpr int kNone = -1;
  DeviceMemory();
  void require_clean_edges(const std::byte* begin, const Block& block) const;

  std::byte* base_ = nullptr;
  mutable std::mutex mutex_;           // guards the rest
  size_t end_ = 0;                     // of the pages given out so far
  std::map<int, size_t> used_;         // bytes, by device
  int open_ = kNone;                   // the device whose memory is open
  std::map<uintptr_t, Block> blocks_;  // by first byte
};

/// Page-locked host memory. The device reads it when a copy runs, so a copy whose source was freed ends the
/// process, and one whose source was changed too early copies the new contents.
class PageLockedMemory {
 public:
  static PageLockedMemory& get();

  void* allocate(size_t bytes);
  /// Locks memory of the host; false if MEGALITH_EMULATOR_MEMORY_LOCK is "refused".
  bool lock(void* block, size_t bytes);
  /// Ends the process if `block` is not a block.
  void release(void* block);
  bool owns(const void* address) const;

 private:
  PageLockedMemory() = default;

  struct Block {
    size_t bytes;
    std::unique_ptr<std::vector<std::byte>> memory;  // null: the host's
  };
  mutable std::mutex mutex_;                  // guards blocks_
  std::map<const std::byte*, Block> blocks_;  // by first byte
};

}  // namespace megalith::emulator
