#include "libcore/ops/cpu/threads.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <thread>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "libcore/base/error.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

namespace {
thread_local int chosen_threads = 0;
}

void set_cpu_threads(int threads) {
  chosen_threads = threads;
#ifdef _OPENMP
  omp_set_num_threads(threads > 0 ? threads : omp_get_num_procs());
#endif
}

namespace cpu {

int cpu_threads() {
  if (chosen_threads > 0) return chosen_threads;
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#endif
}

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

}  // namespace cpu
}  // namespace megalith
