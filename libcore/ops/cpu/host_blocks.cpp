#include "libcore/ops/cpu/host_blocks.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/machine/huge_pages.h"
#include "libcore/base/refusals.h"

namespace megalith::cpu {
namespace {

Memory small_block(size_t bytes) {
  constexpr size_t kAlign = 256;
  const size_t rounded = std::max(kAlign, (bytes + kAlign - 1) / kAlign * kAlign);
  void* const block = std::aligned_alloc(kAlign, rounded);
  if (block == nullptr) throw std::bad_alloc();
  std::memset(block, 0, rounded);
  return {{block, [](void* p) { std::free(p); }}, bytes};
}

Memory large_block(size_t bytes) {
  auto pages = std::make_shared<HugePages>(bytes, HugePages::Backing::kReserved);
  void* const block = pages->as<std::byte>().data();
  return {{block, [pages = std::move(pages)](void*) mutable { pages.reset(); }}, bytes};
}

}  // namespace

Memory allocate_block(size_t bytes) {
  try {
    return bytes < 2 * HugePages::kLargePage ? small_block(bytes) : large_block(bytes);
  } catch (const std::bad_alloc&) {
    throw NoMemory(ErrorKind::kSystem,
                   concat("cpu: no memory for ", bytes, " bytes: ", out_of_memory().what()));
  }
}

}  // namespace megalith::cpu
