#include "libcore/base/base64.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// The test vectors are those of RFC 4648, section 10.
TEST(Base64, DecodesTheVectorsOfTheStandard) {
  const std::pair<const char*, const char*> vectors[] = {
      {"", ""}, {"Zg==", "f"}, {"Zm8=", "fo"}, {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"Zm9vYmFy", "foobar"}};
  for (const auto& [text, bytes] : vectors) EXPECT_EQ(decode_base64(text), bytes) << text;
  EXPECT_EQ(decode_base64("+/8A"), std::string("\xFB\xFF\x00", 3));
}

TEST(Base64, TakesNothingElse) {
  for (const char* text :
       {"Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zh==", "Zm9=", "Zm 9", "Zm9v\n", "Zm-_"})
    EXPECT_FALSE(decode_base64(text)) << text;
}

}  // namespace
}  // namespace megalith
