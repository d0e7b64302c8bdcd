#include "libcore/base/utf8.h"

#include <gtest/gtest.h>

#include "libcore/hash/sha256.h"

namespace megalith {
namespace {

TEST(ReplaceInvalidUtf8, SubstitutesMaximalSubparts) {
  // The expected values are those of Python's bytes.decode("utf-8", errors="replace"), which follows table
  // 3-8 of the Unicode standard.
  const std::string r = "\uFFFD";
  EXPECT_EQ(replace_invalid_utf8(""), "");
  EXPECT_EQ(replace_invalid_utf8("plain \u00e9 \u65e5 \U0001F600"), "plain \u00e9 \u65e5 \U0001F600");
  EXPECT_EQ(replace_invalid_utf8("a\xE2\x82"), "a" + r);
  EXPECT_EQ(replace_invalid_utf8("\xE2\x82"
                                 "a"),
            r + "a");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\x98\xE2\x82\xAC"), r + "\u20ac");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xF4\x90\x80\x80"), r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xC0\xAF\xE0\x80\xAF\xF0\x80\x80"), r + r + r + r + r + r + r + r);
  EXPECT_EQ(replace_invalid_utf8("\xC3(\xFF"), r + "(" + r);
}

// Tests all texts of four bytes, each one of the bytes at which the rules of table 3-7 of the Unicode
// standard change. The digest is from Python 3.11. It covers, for each text, the offset of the first bad byte
// (UnicodeDecodeError.start) and the replaced text:
//   for s in itertools.product(edges, repeat=4):
//     try: at = len(bytes(s).decode())
//     except UnicodeDecodeError as e: at = e.start
//     h.update(bytes([at]) + bytes(s).decode("utf-8", "replace").encode())
// (`at` counts bytes: it is 4 if all bytes are good.)
TEST(Utf8, IsPythonsForAllTextsOfFourBytesAtTheEdges) {
  constexpr std::string_view kEdges(
      "\x00\x41\x80\x7F\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF",
      25);
  Sha256 hash;
  for (size_t number = 0; number < 25 * 25 * 25 * 25; ++number) {
    std::string text(4, '\0');
    for (size_t i = 4, rest = number; i-- > 0; rest /= 25) text[i] = kEdges[rest % 25];
    const size_t good = valid_utf8_prefix(text);
    const std::string found = static_cast<char>(good) + replace_invalid_utf8(text);
    hash.update(found.data(), found.size());
  }
  EXPECT_EQ(hash.hex(), "856a64dbe6a62a0436e6ae8f9278ea78d0ccde38e1f833f14f3ff03798288837");
}

TEST(ValidUtf8Prefix, EndsBeforeTheFirstBadByteWhereverItIs) {
  const std::string good = "a\u00e9\u65e5\U0001F600";
  for (size_t before = 0; before < 100; ++before) {
    std::string text(before, 'x');
    text += good;
    const size_t size = text.size();
    EXPECT_EQ(valid_utf8_prefix(text), size);
    text += "\xE2\x82";
    EXPECT_EQ(valid_utf8_prefix(text), size) << "a sequence that the end cuts";
    text += std::string(100, 'y');
    EXPECT_EQ(valid_utf8_prefix(text), size) << before;
  }
}

// All bytes are bad. If the rest of the text were validated again after each of them, this test would take a
// minute.
TEST(ReplaceInvalidUtf8, TakesAsLongAsTheTextIs) {
  const std::string bad(1 << 20, '\xFF');
  EXPECT_EQ(replace_invalid_utf8(bad).size(), 3 * bad.size());
}

TEST(CharacterBegin, StepsBackToTheFirstByte) {
  const std::string text = "a\u00e9\u20ac\U0001F600z";  // its characters have 1, 2, 3, 4 and 1 bytes
  const std::vector<size_t> begins = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (size_t at = 0; at < text.size(); ++at) EXPECT_EQ(character_begin(text, at), begins[at]) << at;
  EXPECT_EQ(character_begin("\x80\x80", 1), 0U) << "of what is no UTF-8, the beginning";
}

TEST(CountCodePoints, CountsCharactersOfOneToFourBytes) {
  EXPECT_EQ(count_code_points(""), 0);
  EXPECT_EQ(count_code_points("a\u00e9\u4e2d\U0001F600"), 4);
}

}  // namespace
}  // namespace megalith
