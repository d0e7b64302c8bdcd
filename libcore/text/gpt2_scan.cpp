#include "libcore/text/gpt2_scan.h"

namespace megalith {
namespace {

uint8_t flag_of(CharClass kind) {
  switch (kind) {
    case CharClass::kLetter:
      return kLetterByte;
    case CharClass::kNumber:
      return kNumberByte;
    case CharClass::kSpace:
      return kSpaceByte;
    default:
      return 0;
  }
}

/// The flag of a byte that begins the code points from `first` on.
uint8_t flag_of_lead(uint32_t first, uint32_t count) {
  const CharClass kind = char_class(first);
  for (uint32_t i = 1; i < count; ++i)
    if (char_class(first + i) != kind) return kMixedLead;
  return flag_of(kind);
}

std::array<uint8_t, 256> make_byte_flags() {
  std::array<uint8_t, 256> flags{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    if (byte < 0x80)
      flags[byte] = flag_of(char_class(byte));
    else if (byte < 0xC0)
      flags[byte] = kContinuation;
    else if (byte < 0xE0)
      flags[byte] = flag_of_lead((byte & 0x1F) << 6, 1 << 6);
    else if (byte < 0xF0)
      flags[byte] = flag_of_lead((byte & 0x0F) << 12, 1 << 12);
    else
      flags[byte] = kMixedLead;
  }
  return flags;
}

}  // namespace

const std::array<uint8_t, 256>& byte_flags() {
  static const std::array<uint8_t, 256> flags = make_byte_flags();
  return flags;
}

size_t find_gpt2_generic(std::string_view utf8, std::span<uint32_t> ends) {
  return find_one_by_one<gpt2_pretoken>(utf8, ends);
}

}  // namespace megalith
