#pragma once

#include <cstdint>

namespace megalith {

/// Instruction sets that kernels are written for, each with all before it. kAvx512 is F, BW, DQ and VL.
enum class Isa : uint8_t { kGeneric, kAvx2, kAvx512, kAvx512Bf16 };
const char* name(Isa isa);  // "generic", "avx2", "avx512", "avx512bf16"

/// The greatest that this processor runs.
Isa best_isa();

/// The one to use: the best, or a lower one that the environment variable MEGALITH_ISA names (for tests;
/// results do not depend on it). Throws kUsage when that is unknown or too much.
Isa chosen_isa();

/// Whether kernels for AVX-512 with VBMI and VBMI2 may be used where `isa` is chosen.
bool has_vbmi2(Isa isa);

}  // namespace megalith
