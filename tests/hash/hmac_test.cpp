#include "libcore/hash/hmac.h"

#include <gtest/gtest.h>

namespace megalith::test {
namespace {

// RFC 4231, test cases 1, 2, 3 and 6.
TEST(Hmac, GivesThePublishedValues) {
  EXPECT_EQ(hmac_sha256_hex(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256_hex("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac_sha256_hex(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(
      hmac_sha256_hex(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First"),
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, TakesNoKey) {
  // An empty key is padded with zeros (RFC 2104). The value is from Python's hmac.new(b"", b"", "sha256").
  EXPECT_EQ(hmac_sha256_hex("", ""), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST(Hmac, ComparesSecrets) {
  EXPECT_TRUE(same_secret("", ""));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
}

TEST(Hmac, DrawsOtherBytesEachTime) {
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(1000).size(), 1000U);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

}  // namespace
}  // namespace megalith::test
