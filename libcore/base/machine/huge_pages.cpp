#include "libcore/base/machine/huge_pages.h"

#include <cstdint>
#include <new>

#include <sys/mman.h>

namespace megalith {

HugePages::HugePages(size_t bytes, Backing backing) : bytes_(bytes) {
  if (bytes == 0) return;
  const int reserve = backing == Backing::kReserved ? 0 : MAP_NORESERVE;
  mapped_ = bytes < kLargePage ? bytes : bytes + kLargePage;
  map_ = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | reserve, -1, 0);
  if (map_ == MAP_FAILED) {
    map_ = nullptr;
    throw std::bad_alloc();
  }
  const size_t past = reinterpret_cast<uintptr_t>(map_) % kLargePage;
  const size_t skip = bytes < kLargePage || past == 0 ? 0 : kLargePage - past;
  data_ = static_cast<char*>(map_) + skip;
  if (bytes >= kLargePage) madvise(data_, bytes, MADV_HUGEPAGE);  // only a hint: small pages work, too
}

HugePages::~HugePages() {
  if (map_) munmap(map_, mapped_);
}

}  // namespace megalith
