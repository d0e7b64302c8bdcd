#include "libcore/ops/cpu/threads.h"

#include <cstdlib>
#include <memory>

#include "libcore/base/error.h"

namespace megalith::cpu {

float* thread_scratch(size_t floats) {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<float, Free> block;
  thread_local size_t size = 0;
  if (floats > size) {
    constexpr size_t kAlignment = 64;
    const size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    block.reset();
    size = 0;
    block.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (!block) fail(ErrorKind::kDevice, "cpu: no memory for ", bytes, " bytes of scratch");
    size = bytes / sizeof(float);
  }
  return block.get();
}

}  // namespace megalith::cpu
