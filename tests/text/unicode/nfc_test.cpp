#include "libcore/text/unicode/nfc.h"

#include <gtest/gtest.h>

#include "libcore/base/text.h"
#include "libcore/base/utf8.h"
#include "libcore/hash/sha256.h"
#include "libcore/io/files/file.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

std::string nfc(std::string_view text) {
  std::string storage;
  return std::string(to_nfc(text, storage));
}

// The expected texts are those of Hugging Face tokenizers' NFC.
TEST(Nfc, Composes) {
  EXPECT_EQ(nfc("e\u0301"), "\u00e9");
  EXPECT_EQ(nfc("x e\u0301y e\u0301"), "x \u00e9y \u00e9");
  EXPECT_EQ(nfc("a\u0307\u0323"), "\u1ea1\u0307");       // the lower mark comes first
  EXPECT_EQ(nfc("\u00e9\u0323"), "\u1eb9\u0301");        // a composed character takes part
  EXPECT_EQ(nfc("\u212b\u0958"), "\u00c5\u0915\u093c");  // singleton; excluded from composition
  EXPECT_EQ(nfc("\u1100\u1161\u11a8\uac00\u11a8"), "\uac01\uac01");
  EXPECT_EQ(nfc("\u0301\u0323"), "\u0323\u0301");  // nothing precedes them
}

TEST(Nfc, ReturnsATextThatIsNfcItself) {
  std::string storage;
  for (const std::string& text : {std::string(), std::string("plain"), std::string("\u00e9\u65e5\uac00"),
                                  std::string("q\u0301"), std::string("\u0915\u094d\u0937\u093f")}) {
    EXPECT_EQ(to_nfc(text, storage).data(), text.data()) << quote(text);
  }
}

TEST(Nfc, FindsAChangeWhereverItIs) {
  for (const std::string plain : {"x", "\u00e9", "\u043f", "\u65e5", "\uac00", "\u201c", "\U0001f600"})
    for (size_t before = 0; before < 40; ++before)
      for (const size_t after : {0, 1, 40}) {
        const auto around = [&](const std::string& middle) {
          std::string text;
          for (size_t i = 0; i < before; ++i) text += plain;
          text += middle;
          for (size_t i = 0; i < after; ++i) text += plain;
          return text;
        };
        ASSERT_EQ(nfc(around("e\u0301")), around("\u00e9")) << plain << ' ' << before;
        ASSERT_EQ(nfc(around("\u2126 \u1100\u1161")), around("\u03a9 \uac00")) << plain << ' ' << before;
      }
}

TEST(Nfc, LeavesWhatItsUnicodeDoesNotKnow) {
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");  // Unicode 13 composes them
  EXPECT_EQ(nfc("\U0001e4ec\u0301"), "\U0001e4ec\u0301");          // Unicode 15: a mark
}

TEST(Nfc, IsThatOfHuggingFaceForEveryCodePoint) {
  // The golden is made by tools/golden/make_nfc.py.
  std::string all;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    std::string c;
    append_utf8(c, code);
    const std::string texts[] = {c, "a" + c + "\u0301", "a\u0323" + c + "\u0301" + c, c + "\u1161\u11a8" + c};
    for (const std::string& text : texts) all += nfc(text) + "\n";
  }
  EXPECT_EQ(sha256_hex(all) + "\n", read_file(test::test_data("text/goldens/nfc.sha256")));
}

}  // namespace
}  // namespace megalith
