#include "libcore/text/unicode/byte_alphabet.h"

#include <set>

#include <gtest/gtest.h>

namespace megalith {
namespace {

TEST(ByteAlphabet, ShiftsTheUnprintableBytesInOrder) {
  EXPECT_EQ(byte_to_code_point('!'), 0x21u);
  EXPECT_EQ(byte_to_code_point('~'), 0x7Eu);
  EXPECT_EQ(byte_to_code_point(0), 0x100u);
  EXPECT_EQ(byte_to_code_point('\n'), 0x10Au);  // Ċ
  EXPECT_EQ(byte_to_code_point(' '), 0x120u);   // Ġ
  EXPECT_EQ(byte_to_code_point(0x7F), 0x121u);
  EXPECT_EQ(byte_to_code_point(0xA0), 0x142u);
  EXPECT_EQ(byte_to_code_point(0xA1), 0xA1u);
  EXPECT_EQ(byte_to_code_point(0xAC), 0xACu);
  EXPECT_EQ(byte_to_code_point(0xAD), 0x143u);
  EXPECT_EQ(byte_to_code_point(0xFF), 0xFFu);
}

TEST(ByteAlphabet, GivesEachByteItsOwnCharacterAndBack) {
  std::set<uint32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    seen.insert(byte_to_code_point(static_cast<uint8_t>(byte)));
    const std::string text(1, static_cast<char>(byte));
    EXPECT_EQ(from_byte_alphabet(to_byte_alphabet(text)), text);
  }
  EXPECT_EQ(seen.size(), 256u);
}

TEST(ByteAlphabet, WritesWords) {
  EXPECT_EQ(to_byte_alphabet(" hello\n"), "\u0120hello\u010a");
  EXPECT_EQ(to_byte_alphabet("\u00e9"), "\u00c3\u00a9");
  EXPECT_EQ(from_byte_alphabet("\u0120\u00c3\u00a9"), " \u00e9");
}

TEST(ByteAlphabet, HasNoOtherCharacters) {
  for (const char* text : {" ", "a b", "\n", "\u00a0", "\u00ad", "\u0144", "\u65e5", "\U0001F600", "\xFF"})
    EXPECT_FALSE(from_byte_alphabet(text)) << text;
}

}  // namespace
}  // namespace megalith
