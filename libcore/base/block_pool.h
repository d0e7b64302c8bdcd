#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

namespace megalith {

/// Memory in blocks of one size that goes round among threads: who wants one gets the one that was given back
/// last, which is in the caches, so that no more are ever touched than were taken at the same time. Any
/// number of threads at once.
class BlockPool {
 public:
  static constexpr size_t kBlock = size_t{1} << 18;

  BlockPool() = default;
  ~BlockPool();  // all blocks have been given back, or nobody uses them any more
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  char* take();  // kBlock bytes, whatever is in them; throws std::bad_alloc
  /// Beyond kKept of those that nobody has the system gets a block's memory back.
  void give(char* block) noexcept;

  static constexpr size_t kKept = 32;

 private:
  void map_more();

  std::mutex mutex_;
  std::vector<char*> maps_;          // of kBlocksOfMap blocks
  std::vector<char*> kept_, empty_;  // empty_: those without memory, the next one last
};

}  // namespace megalith
