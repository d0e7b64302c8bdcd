#include "libcore/text/piece_keys.h"

#include "libcore/base/isa.h"

namespace megalith {

TakeKeys take_keys() {
  return chosen_isa() >= Isa::kAvx512 ? take_keys_avx512 : nullptr;
}

}  // namespace megalith
