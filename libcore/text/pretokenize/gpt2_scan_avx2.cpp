#include "libcore/base/machine/simd.h"
#if defined(MEGALITH_SIMD)
#include "libcore/text/pretokenize/block_scan_avx2_inl.h"
#include "libcore/text/pretokenize/gpt2_scan_inl.h"

namespace megalith {

size_t find_gpt2_avx2(std::string_view utf8, std::span<uint32_t> ends) {
  return find_gpt2<Avx2>(utf8, ends);
}

size_t find_gpt2_digits_avx2(std::string_view utf8, std::span<uint32_t> ends) {
  return find_gpt2_digits<Avx2>(utf8, ends);
}

}  // namespace megalith
#endif
