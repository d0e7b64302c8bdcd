#pragma once

#include <cstdint>

#include "libcore/base/machine/simd.h"

namespace megalith {

/// Instruction sets for which there are kernels. Each includes all sets listed before it. kAvx512 is AVX-512
/// F, BW, DQ and VL. kAvx2 and above need an x86-64 processor and a build with CMake's MEGALITH_SIMD;
/// otherwise there is only kGeneric.
enum class Isa : uint8_t { kGeneric, kAvx2, kAvx512, kAvx512Bf16 };
const char* name(Isa isa);  // "generic", "avx2", "avx512", "avx512bf16"

/// The largest instruction set that this processor supports.
Isa best_isa();

/// The instruction set to use: the best, or a lower one named by the environment variable MEGALITH_ISA (for
/// tests; results do not depend on it). Throws kUsage if MEGALITH_ISA names an unknown instruction set or one
/// above best_isa().
Isa chosen_isa();

/// Whether kernels for AVX-512 with VBMI and VBMI2 may be used when `isa` is the chosen instruction set.
bool has_vbmi2(Isa isa);

/// The implementations of a function or table X, one for each instruction set, from X.cpp (generic),
/// X_avx2.cpp, X_avx512.cpp, X_avx512vbmi2.cpp and X_avx512bf16.cpp. T is a pointer to a function or to a
/// table of functions; null: X has no implementation for that instruction set.
template <class T>
struct Implementations {
  T generic;
  T avx2 = nullptr;
  T avx512 = nullptr;
  T avx512vbmi2 = nullptr;
  T avx512bf16 = nullptr;
};

/// Initializes a member of Implementations. Gives `implementation`, which an X_ISA.cpp defines, or null in a
/// build that does not compile the X_ISA.cpp files.
#if defined(MEGALITH_SIMD)
#define MEGALITH_IF_SIMD(implementation) implementation
#else
#define MEGALITH_IF_SIMD(implementation) nullptr
#endif

/// The implementation for the largest instruction set that `isa` includes.
template <class T>
T select(Isa isa, const Implementations<T>& of) {
  if (of.avx512bf16 != nullptr && isa >= Isa::kAvx512Bf16) return of.avx512bf16;
  if (of.avx512vbmi2 != nullptr && has_vbmi2(isa)) return of.avx512vbmi2;
  if (of.avx512 != nullptr && isa >= Isa::kAvx512) return of.avx512;
  if (of.avx2 != nullptr && isa >= Isa::kAvx2) return of.avx2;
  return of.generic;
}

}  // namespace megalith
