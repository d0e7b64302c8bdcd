#include "libcore/text/unicode/byte_alphabet.h"

#include <array>

#include "libcore/base/utf8.h"
#include "libcore/text/unicode/unicode.h"

namespace megalith {
namespace {

constexpr bool stands_for_itself(uint32_t byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<uint16_t, 256> of_byte{};
  std::array<int16_t, 324> byte_of{};  // -1: no byte
};

constexpr Alphabet make_alphabet() {
  Alphabet alphabet;
  alphabet.byte_of.fill(-1);
  uint16_t next = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint16_t c = stands_for_itself(byte) ? static_cast<uint16_t>(byte) : next++;
    alphabet.of_byte[byte] = c;
    alphabet.byte_of[c] = static_cast<int16_t>(byte);
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

uint32_t byte_to_code_point(uint8_t byte) {
  return kAlphabet.of_byte[byte];
}

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  for (char c : bytes) append_utf8(out, byte_to_code_point(static_cast<uint8_t>(c)));
  return out;
}

std::optional<std::string> from_byte_alphabet(std::string_view utf8) {
  std::string out;
  while (!utf8.empty()) {
    const CodePoint c = code_point_at(utf8);
    if (c.value >= kAlphabet.byte_of.size() || kAlphabet.byte_of[c.value] < 0) return std::nullopt;
    out += static_cast<char>(kAlphabet.byte_of[c.value]);
    utf8.remove_prefix(c.bytes);
  }
  return out;
}

int byte_of_token(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  const size_t high = kDigits.find(text[3]), low = kDigits.find(text[4]);
  return high == std::string_view::npos || low == std::string_view::npos ? -1
                                                                         : static_cast<int>(high * 16 + low);
}

}  // namespace megalith
