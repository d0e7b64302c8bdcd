#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace megalith::cpu {

/// Calls work(block) for each block in [0, blocks), on all threads of OpenMP's team, or in this thread
/// without OpenMP. The result must not depend on which thread takes which block. `work` must not throw.
template <class Work>
void for_each_block(int64_t blocks, const Work& work) {
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) if (blocks > 1)
#endif
  for (int64_t block = 0; block < blocks; ++block) work(block);
}

/// Divides [0, n) into ranges of `size` (the last one may be shorter) and calls work(begin, end) for each.
template <class Work>
void for_each_range(int64_t n, int64_t size, const Work& work) {
  for_each_block((n + size - 1) / size,
                 [&](int64_t block) { work(block * size, std::min(n, (block + 1) * size)); });
}

/// The number of threads chosen with set_cpu_threads(); if none was, OpenMP's default or, without OpenMP, the
/// machine's number.
int cpu_threads();

/// What scratch memory is for: an op's own work, or copies of its operands in another type, which last while
/// the op works on them.
enum class Scratch : uint8_t { kWork, kCopies };

/// Returns scratch memory for the calling thread: at least `floats` floats, 64-byte aligned, valid until the
/// thread's next call for the same purpose. The memory is kept for the life of the thread: allocating and
/// freeing a megabyte can take longer than the op. Throws kSystem if there is not enough memory.
float* thread_scratch(size_t floats, Scratch purpose = Scratch::kWork);

}  // namespace megalith::cpu
