#pragma once

#include <array>
#include <cstdint>

#include "libcore/text/pretokenizer.h"
#include "libcore/text/unicode.h"

namespace megalith {

/// What the vector kernels know of a byte. The class is that of the character which it begins (or is); a byte
/// of which a character of more than one class may begin is kMixedLead, and has none.
enum ByteFlag : uint8_t {
  kLetterByte = 1,
  kNumberByte = 2,
  kSpaceByte = 4,
  kMixedLead = 8,
  kContinuation = 16  // 0x80 to 0xBF
};

/// ByteFlags of all bytes.
const std::array<uint8_t, 256>& byte_flags();

/// GPT-2's pattern (pretokenizer.h) by 64-byte blocks. For valid UTF-8 all find what gpt2_pretoken finds;
/// else every byte still belongs to one pretoken.
size_t find_gpt2_generic(std::string_view utf8, std::span<uint32_t> ends);
size_t find_gpt2_avx2(std::string_view utf8, std::span<uint32_t> ends);
size_t find_gpt2_avx512vbmi2(std::string_view utf8, std::span<uint32_t> ends);

}  // namespace megalith
