#include "libcore/base/machine/bytes16.h"

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Computes the expected mask byte by byte.
template <class Is>
unsigned bits_where(const std::string& text, const Is& is) {
  unsigned bits = 0;
  for (size_t i = 0; i < text.size(); ++i) bits |= unsigned{is(static_cast<uint8_t>(text[i]))} << i;
  return bits;
}

TEST(Bytes16, GivesABitForEachByteInOrder) {
  for (unsigned first = 0; first < 256; ++first) {
    std::string text;
    for (unsigned i = 0; i < 16; ++i) text += static_cast<char>(first + i * i * 37);
    const Bytes16 bytes = Bytes16::load(text.data());
    for (unsigned c = 0; c < 256; ++c) {
      ASSERT_EQ(bytes.is(static_cast<char>(c)).bits(), bits_where(text, [&](uint8_t b) { return b == c; }));
      ASSERT_EQ(bytes.at_most(static_cast<uint8_t>(c)).bits(),
                bits_where(text, [&](uint8_t b) { return b <= c; }));
    }
    const Bytes16 both = bytes.is(text[3]) | bytes.is(text[11]);
    ASSERT_EQ(both.bits(), bits_where(text, [&](uint8_t b) {
                return b == static_cast<uint8_t>(text[3]) || b == static_cast<uint8_t>(text[11]);
              }));
    const Bytes16 one = bytes.at_most(0x7F) ^ bytes.at_most(0xA0);
    ASSERT_EQ(one.bits(), bits_where(text, [&](uint8_t b) { return b > 0x7F && b <= 0xA0; }));
    std::array<char, 16> copy{};
    bytes.store(copy.data());
    ASSERT_EQ(std::string(copy.data(), copy.size()), text);
  }
}

}  // namespace
}  // namespace megalith
