#include "libcore/hash/sha256.h"

#include <gtest/gtest.h>

namespace megalith {
namespace {

// Examples of FIPS 180-2, appendix B, and of NIST's SHA-256 page (the empty message).
TEST(Sha256, EqualsTheKnownAnswers) {
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>('a' + i % 26);
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{63}, size_t{64}, size_t{65}, size_t{999}}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece)
      hash.update(text.data() + at, std::min(piece, text.size() - at));
    EXPECT_EQ(hash.hex(), sha256_hex(text)) << piece;
  }
}

}  // namespace
}  // namespace megalith
