#include "libcore/base/machine/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#if defined(MEGALITH_SIMD)
#if defined(__clang__) && !defined(_Bool)
// glibc's header uses _Bool, which clang accepts only in the GNU dialects of C++.
#define _Bool bool  // NOLINT(bugprone-reserved-identifier): C's own
#endif
#include <sys/platform/x86.h>
#endif

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr std::array<const char*, 4> kNames = {"generic", "avx2", "avx512", "avx512bf16"};

}  // namespace

const char* name(Isa isa) {
  return kNames[static_cast<size_t>(isa)];
}

#if defined(MEGALITH_SIMD)
// Reads what the C library found out about the processor when the process began. Asking again
// (__builtin_cpu_supports) takes a dozen cpuid instructions, each of which the host of a virtual machine
// answers in 4.5 us.
Isa best_isa() {
  const bool avx2 = CPU_FEATURE_ACTIVE(AVX2) && CPU_FEATURE_ACTIVE(FMA) && CPU_FEATURE_ACTIVE(F16C) &&
                    CPU_FEATURE_ACTIVE(BMI1) && CPU_FEATURE_ACTIVE(BMI2);
  const bool avx512 = avx2 && CPU_FEATURE_ACTIVE(AVX512F) && CPU_FEATURE_ACTIVE(AVX512BW) &&
                      CPU_FEATURE_ACTIVE(AVX512DQ) && CPU_FEATURE_ACTIVE(AVX512VL);
  const bool bf16 = avx512 && CPU_FEATURE_ACTIVE(AVX512_BF16);
  return bf16 ? Isa::kAvx512Bf16 : avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kGeneric;
}

bool has_vbmi2(Isa isa) {
  return isa >= Isa::kAvx512 && CPU_FEATURE_ACTIVE(AVX512_VBMI) && CPU_FEATURE_ACTIVE(AVX512_VBMI2);
}
#else
Isa best_isa() {
  return Isa::kGeneric;
}

bool has_vbmi2(Isa) {
  return false;
}
#endif

Isa chosen_isa() {
  const Isa best = best_isa();
  const char* const wanted = std::getenv("MEGALITH_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  std::string known;
  for (size_t i = 0; i <= static_cast<size_t>(best); ++i) {
    if (kNames[i] == std::string_view(wanted)) return static_cast<Isa>(i);
    known += concat(i > 0 ? ", " : "", kNames[i]);
  }
  fail(ErrorKind::kUsage, "MEGALITH_ISA is ", quote(wanted), "; this processor runs ", known);
}

}  // namespace megalith
