#include "libcore/json/json_text.h"

#include "libcore/base/isa.h"
#include "libcore/json/json_text_inl.h"

namespace megalith {

const JsonText kJsonTextGeneric = {find_special<Sse2>, decode<Sse2>};

const JsonText& json_text() {
  const Isa isa = chosen_isa();
  if (has_vbmi2(isa)) return kJsonTextAvx512Vbmi2;
  return isa >= Isa::kAvx2 ? kJsonTextAvx2 : kJsonTextGeneric;
}

}  // namespace megalith
