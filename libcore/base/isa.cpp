#include "libcore/base/isa.h"

#include <array>
#include <cstdlib>
#include <string>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

constexpr std::array<const char*, 4> kNames = {"generic", "avx2", "avx512", "avx512bf16"};

}  // namespace

const char* name(Isa isa) {
  return kNames[static_cast<size_t>(isa)];
}

Isa best_isa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  const bool bf16 = avx512 && __builtin_cpu_supports("avx512bf16");
  return bf16 ? Isa::kAvx512Bf16 : avx512 ? Isa::kAvx512 : avx2 ? Isa::kAvx2 : Isa::kGeneric;
}

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

bool has_vbmi2(Isa isa) {
  return isa >= Isa::kAvx512 && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}

}  // namespace megalith
