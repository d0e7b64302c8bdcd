#include "libcore/base/block_pool.h"

#include <algorithm>
#include <iterator>
#include <new>

#include <sys/mman.h>

namespace megalith {
namespace {

/// Of addresses only, and given back at once.
constexpr size_t kBlocksOfMap = 64;

}  // namespace

BlockPool::~BlockPool() {
  for (char* const map : maps_) ::munmap(map, kBlocksOfMap * kBlock);
}

BlockPool::Block BlockPool::take() {
  const std::thread::id me = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  if (kept_.empty() && empty_.empty()) map_more();
  std::vector<Block>& from = kept_.empty() ? empty_ : kept_;
  auto found =
      std::find_if(from.rbegin(), from.rend(), [me](const Block& block) { return block.user == me; });
  if (found == from.rend()) found = from.rbegin();
  char* const data = found->data;
  from.erase(std::next(found).base());
  return {.data = data, .user = me};
}

void BlockPool::give(Block block) noexcept {
  const std::lock_guard lock(mutex_);
  const bool keep = kept_.size() < kKept;
  if (!keep) ::madvise(block.data, kBlock, MADV_DONTNEED);
  (keep ? kept_ : empty_).push_back(block);  // has room for all blocks
}

void BlockPool::map_more() {
  const size_t blocks = (maps_.size() + 1) * kBlocksOfMap;
  maps_.reserve(maps_.size() + 1);
  kept_.reserve(blocks);
  empty_.reserve(blocks);
  void* const map = ::mmap(nullptr, kBlocksOfMap * kBlock, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  maps_.push_back(static_cast<char*>(map));
  for (size_t i = kBlocksOfMap; i-- > 0;) empty_.push_back({.data = maps_.back() + i * kBlock});
}

}  // namespace megalith
