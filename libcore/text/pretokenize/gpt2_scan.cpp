#include "libcore/text/pretokenize/gpt2_scan.h"

namespace megalith {

size_t find_gpt2_generic(std::string_view utf8, std::span<uint32_t> ends) {
  return find_one_by_one<gpt2_pretoken>(utf8, ends);
}

FindGpt2 find_gpt2(Isa isa) {
  return select<FindGpt2>(isa, {.generic = find_gpt2_generic,
                                .avx2 = MEGALITH_IF_SIMD(find_gpt2_avx2),
                                .avx512vbmi2 = MEGALITH_IF_SIMD(find_gpt2_avx512vbmi2)});
}

FindGpt2 find_gpt2_digits(Isa isa) {
  return select<FindGpt2>(isa, {.generic = nullptr,
                                .avx2 = MEGALITH_IF_SIMD(find_gpt2_digits_avx2),
                                .avx512vbmi2 = MEGALITH_IF_SIMD(find_gpt2_digits_avx512vbmi2)});
}

}  // namespace megalith
