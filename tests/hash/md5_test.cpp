#include "libcore/hash/md5.h"

#include <string>

#include <gtest/gtest.h>

namespace megalith {
namespace {

// The test suite of RFC 1321, A.5.
TEST(Md5, EqualsTheTestSuite) {
  EXPECT_EQ(md5_hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(md5_hex("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

}  // namespace
}  // namespace megalith
