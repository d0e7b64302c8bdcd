#pragma once

#include <cstddef>
#include <cstdint>

/// Instructions that libcore/ops/cuda/mma.h wraps, with the layouts of the PTX ISA. All threads of a warp
/// call those on matrices together.
namespace megalith::emulator {

/// The value of a 16-bit element.
using Widen = float (*)(uint16_t bits);

/// mma.sync.m16n8k16: sums += a b, where the warp's fragments hold sums [16, 8], a [16, 16] and b [16, 8].
/// Sums are in fp32.
void multiply_matrices(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Widen widen);

/// ldmatrix of `count` (1, 2 or 4) 8 x 8 matrices of 16-bit elements: thread 8 m + i gives the address of row
/// i of matrix m, and to[m] receives two elements of that matrix. Ends the process if a row is not aligned to
/// 16 bytes or not in shared memory. Adds to Controls::counts.bank_conflicts.
void load_matrices(uint32_t* to, size_t count, bool transposed, const void* row);

/// cp.async of the running thread. `from` null: zeros. Ends the process if an address is not aligned to
/// `bytes` or `to` is not in shared memory.
void copy_async(void* to, const void* from, size_t bytes);

}  // namespace megalith::emulator
