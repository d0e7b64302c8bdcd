#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include "libcore/text/pretokenize/block_scan_avx512vbmi2_inl.h"
#include "libcore/text/pretokenize/gpt2_scan_inl.h"

namespace megalith {

size_t find_gpt2_avx512vbmi2(std::string_view utf8, std::span<uint32_t> ends) {
  return find_gpt2<Avx512>(utf8, ends);
}

size_t find_gpt2_digits_avx512vbmi2(std::string_view utf8, std::span<uint32_t> ends) {
  return find_gpt2_digits<Avx512>(utf8, ends);
}

}  // namespace megalith
#endif
