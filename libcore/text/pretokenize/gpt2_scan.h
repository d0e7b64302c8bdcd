#pragma once

#include "libcore/base/machine/isa.h"
#include "libcore/text/pretokenize/block_scan.h"
#include "libcore/text/pretokenize/pretokenizer.h"

namespace megalith {

/// Kernels for GPT-2's pattern (pretokenizer.h); the vector kernels read a text in 64-byte blocks. For valid
/// UTF-8 all of them find the pretokens that gpt2_pretoken finds; otherwise every byte still belongs to one
/// pretoken.
size_t find_gpt2_generic(std::string_view utf8, std::span<uint32_t> ends);
size_t find_gpt2_avx2(std::string_view utf8, std::span<uint32_t> ends);
size_t find_gpt2_avx512vbmi2(std::string_view utf8, std::span<uint32_t> ends);
using FindGpt2 = size_t (*)(std::string_view utf8, std::span<uint32_t> ends);
/// The fastest of these functions that runs on `isa`.
FindGpt2 find_gpt2(Isa isa);

/// The same for a text in which each number (CharTraits::is_digit) is a pretoken, and GPT-2's pattern is
/// applied to what is between them (StarCoder). Null if there is no kernel for `isa`.
size_t find_gpt2_digits_avx2(std::string_view utf8, std::span<uint32_t> ends);
size_t find_gpt2_digits_avx512vbmi2(std::string_view utf8, std::span<uint32_t> ends);
FindGpt2 find_gpt2_digits(Isa isa);

}  // namespace megalith
