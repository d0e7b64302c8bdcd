#pragma once

#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace megalith {

/// Memory in blocks of one size that goes round among threads, so that no more are ever touched than were
/// taken at the same time. Who wants one gets the last one given back of those that the same thread had, for
/// they are in the caches of its core; else the last one given back. Any number of threads at once.
class BlockPool {
 public:
  static constexpr size_t kBlock = size_t{1} << 18;  // bytes

  BlockPool() = default;
  ~BlockPool();  // all blocks have been given back, or nobody uses them any more
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  struct Block {
    char* data = nullptr;       // kBlock bytes, whatever is in them
    std::thread::id user = {};  // who took it last
  };
  Block take();  // throws std::bad_alloc
  /// Beyond kKept of those that nobody has the system gets a block's memory back.
  void give(Block block) noexcept;

  static constexpr size_t kKept = 32;  // blocks: 8 MiB

 private:
  void map_more();

  std::mutex mutex_;
  std::vector<char*> maps_;          // of kBlocksOfMap blocks
  std::vector<Block> kept_, empty_;  // that nobody has, with memory and without
};

}  // namespace megalith
