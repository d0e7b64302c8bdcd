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

// As tokenizers 0.23.3: each byte of no UTF-8 is a token by itself for the steps that follow, and a token
// without text ends a run of bytes.
TEST(TokenDecoder, KeepsBytesThatAreNotUtf8Apart) {
  EXPECT_EQ(decode({D::ByteFallback{}, D::Strip{"\uFFFD", 1, 0}}, {"<0xE2>", "<0x82>", "a"}), "a");
  EXPECT_EQ(decode({D::ByteFallback{}, D::WordPiece{"##", false}}, {"<0xE2>", "<0x82>", "a"}),
            "\uFFFD \uFFFD a");
  EXPECT_EQ(decode({D::Replace{"y", ""}, D::ByteFallback{}, D::Fuse{}}, {"<0xE2>", "<0x82>", "y", "<0xAC>"}),
            "\uFFFD\uFFFD\uFFFD");
}

/// What a JoinedDecoder makes of lists of these tokens, each with a line end; "none" if there is no such
/// decoder.
std::string decode_together(std::vector<D::Step> steps, const std::vector<std::vector<std::string>>& lists) {
  std::vector<std::string> tokens;
  std::vector<int32_t> ids;
  for (const std::vector<std::string>& list : lists) {
    for (const std::string& token : list) {
      ids.push_back(static_cast<int32_t>(tokens.size()));
      tokens.push_back(token);
    }
    ids.push_back(Tokenizer::kTextEnd);
  }
  const auto decoder = JoinedDecoder::of(TokenDecoder(std::move(steps)), TokenTexts(tokens));
  if (!decoder) return "none";
  ByteBuffer out;
  out.append("> ", 2);
  decoder->decode_all(ids, out);
  return {out.data(), out.size()};
}

// The expected texts are those of the tests above: of Hugging Face tokenizers' decoders.
TEST(JoinedDecoder, DecodesListsAsTheStepsDoEach) {
  const D::Replace mark{"\u2581", " "};
  EXPECT_EQ(decode_together({D::Fuse{}}, {{"a", "b"}, {}, {"c"}}), "> ab\n\nc\n");
  EXPECT_EQ(decode_together({mark, D::Replace{"a", "bb"}, D::Fuse{}}, {{"\u2581a\u2581"}}), ">  bb \n");
  EXPECT_EQ(
      decode_together({D::Fuse{}, D::Strip{" ", 1, 2}}, {{" a", " b   "}, {" "}, {"  "}, {"a\n", "  x"}}),
      "> a b \n\n\na\n  x\n");
  EXPECT_EQ(decode_together({mark, D::ByteFallback{}, D::Fuse{}},
                            {{"<0xE2>", "<0x82>", "<0xAC>", "x"}, {"a", "<0xE2>", "<0x82>", "x", "<0x41>"}}),
            "> \u20acx\na\uFFFD\uFFFDxA\n");
  EXPECT_EQ(decode_together({D::ByteFallback{}, D::Fuse{}}, {{"<0xE2>", "<0x82>"}, {"<0xAC>"}}),
            "> \uFFFD\uFFFD\n\uFFFD\n");
  EXPECT_EQ(decode_together({mark, D::ByteFallback{}, D::Fuse{}, D::Strip{" ", 1, 0}},
                            {{"\u2581", "<0xC3>", "<0xA9>"}, {"<0x20>", "<0x0A>"}, {"<0xFE>"}}),
            "> \u00e9\n\n\n\uFFFD\n");
}

TEST(JoinedDecoder, IsThereOnlyForStepsThatJoin) {
  for (const std::vector<D::Step>& steps : {std::vector<D::Step>{},
                                            {D::Replace{"a", "b"}},
                                            {D::ByteFallback{}},
                                            {D::Strip{" ", 1, 0}, D::Fuse{}},
                                            {D::Fuse{}, D::Replace{"a", "b"}},
                                            {D::ByteFallback{}, D::Replace{"a", "b"}, D::Fuse{}},
                                            {D::Metaspace{"_", true}, D::Fuse{}},
                                            {D::ByteLevel{}},
                                            {D::Replace{"a", ""}, D::ByteFallback{}, D::Fuse{}},
                                            {D::Replace{"a", std::string(100, 'b')}, D::Fuse{}}})
    EXPECT_EQ(decode_together(steps, {{"a"}}), "none");
}

TEST(TokenDecoder, RefusesToFillTheMemory) {
  std::vector<D::Step> steps;
  for (int i = 0; i < 32; ++i) steps.emplace_back(D::Replace{"a", "aa"});
  test::expect_error(ErrorKind::kData, {"decoder"}, [&] { decode(steps, {"a"}); });
}

}  // namespace
}  // namespace megalith
