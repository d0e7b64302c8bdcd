#include "libcore/text/unicode/punkt_chars.h"

#include <gtest/gtest.h>

#include "libcore/base/utf8.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

std::string lower(std::string_view text) {
  std::string out;
  append_lower(text, out);
  return out;
}

// The expected texts are those of Python's str.lower().
TEST(PunktChars, LowersAsPythonDoes) {
  EXPECT_EQ(lower(""), "");
  EXPECT_EQ(lower("ABC xyz [@`{"), "abc xyz [@`{");
  EXPECT_EQ(lower("\u00c9\u0416\U00010400"), "\u00e9\u0436\U00010428");
  EXPECT_EQ(lower("\u0130"), "i\u0307");
  EXPECT_EQ(lower("\u03a3"), "\u03c3");              // alone
  EXPECT_EQ(lower("\u0391\u03a3"), "\u03b1\u03c2");  // last
  EXPECT_EQ(lower("\u0391\u03a3\u0391"), "\u03b1\u03c3\u03b1");
  EXPECT_EQ(lower("\u0391\u0301.\u03a3'."), "\u03b1\u0301.\u03c2'.");  // marks and points are skipped
  EXPECT_EQ(lower("\u0391\u03a3'\u0391"), "\u03b1\u03c3'\u03b1");
  EXPECT_EQ(lower("1\u03a3"), "1\u03c3");
}

// The golden is made by tools/golden/make_sentences.py.
TEST(PunktChars, AreThoseOfPythonForEveryCodePoint) {
  std::string all;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string c;
    append_utf8(c, code);
    const PunktChar traits = punkt_char(code);
    for (const bool flag : {traits.is_digit(), traits.is_letter(), traits.is_upper(), traits.is_lower()})
      all += flag ? '1' : '0';
    const std::string texts[] = {c, "A" + c + "\u03a3", c + "\u03a3" + c, "A\u03a3" + c + "A"};
    for (const std::string& text : texts) all += " " + lower(text);
    all += "\n";
  }
  EXPECT_EQ(sha256_hex(all) + "\n", read_file(test::test_data("text/goldens/punkt/characters.sha256")));
}

}  // namespace
}  // namespace megalith
