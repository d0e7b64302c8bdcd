#include "libcore/text/unicode/unicode.h"

#include <sstream>

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

TEST(CharClass, IsThatOfHuggingFaceForEveryCodePoint) {
  std::vector<CharClass> wanted(0x110000, CharClass::kOther);
  std::istringstream golden(read_file(test::test_data("text/goldens/classes.txt")));
  std::string line;
  std::getline(golden, line);  // where it comes from
  size_t listed = 0;
  uint32_t first = 0, last = 0;
  for (char kind = 0; golden >> std::hex >> first >> last >> kind;) {
    const CharClass c = kind == 'L'   ? CharClass::kLetter
                        : kind == 'N' ? CharClass::kNumber
                                      : CharClass::kSpace;
    for (uint32_t code = first; code <= last; ++code, ++listed) wanted.at(code) = c;
  }
  ASSERT_EQ(listed, 141028u + 1911u + 25u);  // as counted by Python
  for (uint32_t code = 0; code < wanted.size(); ++code)
    ASSERT_EQ(char_class(code), wanted[code]) << std::hex << code;
  EXPECT_EQ(char_class(0x110000), CharClass::kOther);
  EXPECT_EQ(char_class(0xFFFFFFFF), CharClass::kOther);
}

TEST(CodePoint, ReadsBackEveryScalarValue) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string utf8;
    append_utf8(utf8, code);
    const CodePoint found = code_point_at(utf8);
    ASSERT_EQ(found.value, code);
    ASSERT_EQ(found.bytes, utf8.size());
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
