#include "libcore/text/formats/token_decoder.h"

#include "tests/text/fixtures.h"

namespace megalith {
namespace {

using D = TokenDecoder;

std::string decode(std::vector<D::Step> steps, std::vector<std::string> tokens) {
  return TokenDecoder(std::move(steps)).decode(std::move(tokens));
}

// The expected texts are those of Hugging Face tokenizers' decoders.
TEST(TokenDecoder, DoesEachStep) {
  EXPECT_EQ(decode({}, {"a", "b"}), "a b");
  EXPECT_EQ(decode({D::Fuse{}}, {"a", "b"}), "ab");
  EXPECT_EQ(decode({D::Replace{"_", " "}}, {"_a", "_b_"}), " a b ");
  EXPECT_EQ(decode({D::Strip{" ", 1, 0}}, {"  a", " b"}), " ab");
  EXPECT_EQ(decode({D::Fuse{}, D::Strip{" ", 1, 2}}, {" a", " b   "}), "a b ");
  EXPECT_EQ(decode({D::Metaspace{"_", true}}, {"_a_", "_b"}), "a b");
  EXPECT_EQ(decode({D::Metaspace{"_", false}}, {"_a", "_b"}), " a b");
  EXPECT_EQ(decode({D::ByteLevel{}}, {"\u0120a", "\u00e2\u0124", "\u00ac", "\u20ac"}), " a\u20ac\u20ac");
}

// As decoders.WordPiece of Hugging Face tokenizers 0.23.3 gives them.
TEST(TokenDecoder, JoinsWordPieces) {
  EXPECT_EQ(decode({D::WordPiece{"##", false}}, {"##a", "##b", "c", "."}), "##ab c .");
  EXPECT_EQ(decode({D::WordPiece{"##", true}}, {"do", "n't", ".", "x", "'", "y"}), "don't. x ' y");
  EXPECT_EQ(decode({D::WordPiece{"", false}}, {"a", "b"}), "ab");
}

TEST(TokenDecoder, JoinsBytesThatAreUtf8) {
  const std::vector<D::Step> steps = {D::ByteFallback{}, D::Fuse{}};
  EXPECT_EQ(decode(steps, {"<0xE2>", "<0x82>", "<0xAC>", "x"}), "\u20acx");
  EXPECT_EQ(decode(steps, {"a", "<0xE2>", "<0x82>", "x", "<0x41>"}), "a\uFFFD\uFFFDxA");
  EXPECT_EQ(decode(steps, {"<0xG0>", "<0x4>", "<0x041>"}), "<0xG0><0x4><0x041>");
}

TEST(TokenDecoder, RefusesToFillTheMemory) {
  std::vector<D::Step> steps;
  for (int i = 0; i < 32; ++i) steps.emplace_back(D::Replace{"a", "aa"});
  test::expect_error(ErrorKind::kData, {"decoder"}, [&] { decode(steps, {"a"}); });
}

}  // namespace
}  // namespace megalith
