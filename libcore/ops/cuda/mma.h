#pragma once

#include <type_traits>

#include "libcore/ops/cuda/kernel_tools.h"

/// Instructions of compute capability 8.0 and above: products of small matrices on the tensor cores, loads of
/// their operands, and copies to shared memory that continue while a thread computes. The names of registers
/// are those of the PTX ISA. In a warp's fragments, thread 4 g + c holds
/// - of sums [16, 8]: the columns 2 c and 2 c + 1 of row g (sums[0], [1]) and of row g + 8 (sums[2], [3]);
/// - of a [16, 16]: in the same way the columns 2 c, 2 c + 1 (a[0] of row g, a[1] of row g + 8) and 2 c + 8,
///   2 c + 9 (a[2], a[3]);
/// - of b [16, 8]: the rows 2 c, 2 c + 1 (b0) and 2 c + 8, 2 c + 9 (b1) of column g.
/// So the sums of two products side by side, narrowed, are an `a` of the next one.
namespace megalith::cuda {

#if defined(__CUDACC__)
__device__ inline unsigned shared_address(const void* place) {
  return static_cast<unsigned>(__cvta_generic_to_shared(place));
}
#endif

/// sums += a b, with elements in T, which is Bf16 or Half, and sums in fp32.
template <class T>
__device__ inline void multiply_add(float (&sums)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
#if defined(__CUDACC__)
  if constexpr (std::is_same_v<T, Half>)
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  else
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  emulator::multiply_matrices(sums, a, {b0, b1}, [](uint16_t bits) { return widen(T{bits}); });
#endif
}

/// Loads kCount (1, 2 or 4) matrices of 8 x 8 elements from shared memory. Thread 8 m + i of the warp gives
/// the address of row i of matrix m, aligned to 16 bytes. Thread 4 g + c receives the elements 2 c and 2 c +
/// 1 of row g, or with `kTransposed` of column g.
template <int kCount, bool kTransposed>
__device__ inline void load_matrices(uint32_t (&to)[kCount], const void* row) {
  static_assert(kCount == 1 || kCount == 2 || kCount == 4);
#if defined(__CUDACC__)
  const unsigned at = shared_address(row);
  // volatile and "memory" keep it between the barriers around it: it reads what other threads wrote.
  if constexpr (kCount == 1 && kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(to[0])
                 : "r"(at)
                 : "memory");
  else if constexpr (kCount == 1)
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(to[0]) : "r"(at) : "memory");
  else if constexpr (kCount == 2 && kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(at)
                 : "memory");
  else if constexpr (kCount == 2)
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(to[0]), "=r"(to[1])
                 : "r"(at)
                 : "memory");
  else if constexpr (kTransposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
#else
  emulator::load_matrices(to, kCount, kTransposed, row);
#endif
}

/// Begins to copy kBytes (4, 8 or 16), to which both addresses are aligned, from global to shared memory;
/// writes zeros where `there` is false, and then does not read.
template <int kBytes>
__device__ inline void copy_async(void* to, const void* from, bool there) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16);
#if defined(__CUDACC__)
  const int bytes = there ? kBytes : 0;
  if constexpr (kBytes == 16)  // past L1, where no other thread of the block looks for it
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)), "l"(from),
                 "n"(kBytes), "r"(bytes)
                 : "memory");
#else
  emulator::copy_async(to, there ? from : nullptr, kBytes);
#endif
}

/// Ends a group of this thread's copies.
__device__ inline void commit_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.commit_group;" ::: "memory");
#else
  emulator::EmulatedBlock::running().copies().commit();
#endif
}

/// Waits for this thread's groups of copies, except the last kLeft. Other threads see them after a barrier.
template <int kLeft>
__device__ inline void wait_for_copies() {
#if defined(__CUDACC__)
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#else
  emulator::EmulatedBlock::running().copies().wait(kLeft);
#endif
}

/// Returns the value. The compiler computes what depends on it after this call, and does not move that out of
/// the loop around it, where it would take registers.
__device__ inline int computed_here(int value) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(value));
#endif
  return value;
}

}  // namespace megalith::cuda
