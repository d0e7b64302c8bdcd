#include "libcore/json/json_text.h"

#include "libcore/json/json_text_inl.h"

namespace megalith {

const JsonText& json_text(Isa isa) {
  static constexpr JsonText kGeneric = {find_special<Generic>, decode<Generic>};
  return *select<const JsonText*>(isa, {.generic = &kGeneric,
                                        .avx2 = MEGALITH_IF_SIMD(&kJsonTextAvx2),
                                        .avx512vbmi2 = MEGALITH_IF_SIMD(&kJsonTextAvx512Vbmi2)});
}

}  // namespace megalith
