#include "libcore/text/unicode/char_traits.h"

#include <sstream>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

// The golden distinguishes letters (L), numbers (N) and white space (S), as Hugging Face's ByteLevel
// pre-tokenizer does.
char class_of(CharKind kind) {
  if (KindSet::of(CharKind::kUpper, CharKind::kLower, CharKind::kLetter).has(kind)) return 'L';
  return kind == CharKind::kNumber ? 'N' : kind == CharKind::kSpace ? 'S' : '-';
}

TEST(CharTraits, HoldTheClassesOfHuggingFaceForEveryCodePoint) {
  std::vector<char> wanted(0x110000, '-');
  std::istringstream golden(read_file(test::test_data("text/goldens/classes.txt")));
  std::string line;
  std::getline(golden, line);  // the file's origin
  size_t listed = 0;
  uint32_t first = 0, last = 0;
  for (char kind = 0; golden >> std::hex >> first >> last >> kind;)
    for (uint32_t code = first; code <= last; ++code, ++listed) wanted.at(code) = kind;
  ASSERT_EQ(listed, 141028u + 1911u + 25u);  // as counted by Python
  for (uint32_t code = 0; code < wanted.size(); ++code)
    ASSERT_EQ(class_of(char_traits(code).kind()), wanted[code]) << std::hex << code;
}

TEST(CharTraits, AreNoneAboveTheLastCodePoint) {
  for (const uint32_t code : {0x110000u, 0xFFFFFFFFu}) {
    EXPECT_EQ(char_traits(code).kind(), CharKind::kOther);
    EXPECT_EQ(char_traits(code).composition(), Composition::kNone);
    EXPECT_FALSE(char_traits(code).is_word());
    EXPECT_FALSE(char_traits(code).is_digit());
  }
}

TEST(CharTraits, OfAsciiNeedNoLookAtTheBlocks) {
  for (uint32_t code = 0; code < 0x80; ++code)
    EXPECT_EQ(ascii_traits(static_cast<unsigned char>(code)).kind(), char_traits(code).kind()) << code;
}

}  // namespace
}  // namespace megalith
