#include "libcore/ops/cpu/threads.h"

#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "libcore/base/machine/proc.h"
#include "libcore/base/refusals.h"
#include "libcore/ops/backend/backend.h"

namespace megalith {

namespace {

thread_local int chosen_threads = 0;

#ifdef _OPENMP
/// Makes OpenMP's threads for the calling thread. OpenMP would end the process if it got none, so as many are
/// tried first, by one thread at a time. Throws std::system_error.
void make_team() {
  static std::mutex alone;
  const std::lock_guard lock(alone);
  {
    std::mutex held;  // keeps the threads until all are there
    std::vector<std::jthread> tried;
    const std::lock_guard hold(held);
    for (int i = 1; i < omp_get_max_threads(); ++i)
      tried.emplace_back([&held] { const std::lock_guard wait(held); });
  }
#pragma omp parallel
  {}
}
#endif

}  // namespace

void set_cpu_threads(int threads) {
  chosen_threads = threads;
#ifdef _OPENMP
  omp_set_num_threads(threads > 0 ? threads : usable_cpus());
  make_team();
#endif
}

namespace cpu {

int cpu_threads() {
  if (chosen_threads > 0) return chosen_threads;
#ifdef _OPENMP
  return omp_get_max_threads();
#else
  return usable_cpus();
#endif
}

float* thread_scratch(size_t floats, Scratch purpose) {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };
  struct Block {
    std::unique_ptr<float, Free> memory;
    size_t size = 0;
  };
  thread_local Block blocks[2];
  Block& block = blocks[static_cast<size_t>(purpose)];
  if (floats > block.size) {
    constexpr size_t kAlignment = 64;
    const size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    block.memory.reset();
    block.size = 0;
    block.memory.reset(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)));
    if (!block.memory) throw out_of_memory();
    block.size = bytes / sizeof(float);
  }
  return block.memory.get();
}

}  // namespace cpu
}  // namespace megalith
