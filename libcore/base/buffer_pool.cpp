#include "libcore/base/buffer_pool.h"

#include <algorithm>
#include <iterator>
#include <new>

#include <sys/mman.h>

namespace megalith {
namespace {

/// Buffers of one map. It may be large, because addresses cost no memory until they are written.
constexpr size_t kBuffersOfMap = 64;

}  // namespace

BufferPool::~BufferPool() {
  for (char* const map : maps_) ::munmap(map, kBuffersOfMap * kBytes);
}

BufferPool::Buffer BufferPool::take() {
  const std::thread::id me = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  if (kept_.empty() && empty_.empty()) map_more();
  std::vector<Buffer>& from = kept_.empty() ? empty_ : kept_;
  auto found =
      std::find_if(from.rbegin(), from.rend(), [me](const Buffer& buffer) { return buffer.user == me; });
  if (found == from.rend()) found = from.rbegin();
  char* const data = found->data;
  from.erase(std::next(found).base());
  return {.data = data, .user = me};
}

void BufferPool::give(Buffer buffer) noexcept {
  const std::lock_guard lock(mutex_);
  const bool keep = kept_.size() < kKept;
  if (!keep) ::madvise(buffer.data, kBytes, MADV_DONTNEED);
  (keep ? kept_ : empty_).push_back(buffer);  // has room for all buffers
}

void BufferPool::map_more() {
  const size_t buffers = (maps_.size() + 1) * kBuffersOfMap;
  maps_.reserve(maps_.size() + 1);
  kept_.reserve(buffers);
  empty_.reserve(buffers);
  void* const map = ::mmap(nullptr, kBuffersOfMap * kBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map == MAP_FAILED) throw std::bad_alloc();
  maps_.push_back(static_cast<char*>(map));
  for (size_t i = kBuffersOfMap; i-- > 0;) empty_.push_back({.data = maps_.back() + i * kBytes});
}

}  // namespace megalith
