#include "libcore/text/unicode/unicode.h"

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"

namespace megalith {
namespace {

TEST(CodePoint, ReadsBackEveryScalarValue) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string utf8;
    append_utf8(utf8, code);
    const CodePoint found = code_point_at(utf8);
    ASSERT_EQ(found.value, code);
    ASSERT_EQ(found.bytes, utf8.size());
    ASSERT_EQ(character_bytes(utf8[0]), utf8.size());
  }
}

TEST(CodePoint, TakesABrokenByteAlone) {
  for (const char* broken :
       {"\x80", "\xC1\x81", "\xE2\x82", "\xE2(\xA1", "\xF0\x9F\x98", "\xF8\x88\x80\x80\x80", "\xFF"}) {
    const CodePoint found = code_point_at(broken);
    EXPECT_EQ(found.value, 0xFFFDu) << broken;
    EXPECT_EQ(found.bytes, 1u) << broken;
  }
}

}  // namespace
}  // namespace megalith
