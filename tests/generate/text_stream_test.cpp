#include "libcore/generate/text_stream.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/base/utf8.h"

namespace megalith {
namespace {

/// A tokenizer in which each id is one byte.
class Bytes final : public Tokenizer {
 public:
  int vocab_size() const override { return 256; }
  int eod() const override { return 0; }
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) out += static_cast<char>(id);
    return replace_invalid_utf8(out);
  }
  std::string name() const override { return "Bytes"; }
  std::string hash() const override { return name(); }
};

/// A tokenizer of words as SentencePiece writes them: each word begins with a blank, except the first word of
/// a text.
class Words final : public Tokenizer {
 public:
  int vocab_size() const override { return 26; }
  int eod() const override { return 0; }
  void encode(std::string_view, std::vector<int32_t>&) const override {}
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) out += concat(out.empty() ? "" : " ", static_cast<char>('a' + id));
    return out;
  }
  std::string name() const override { return "Words"; }
  std::string hash() const override { return name(); }
};

/// Pushes the bytes of `text`, one by one. Returns the pieces, joined by "|"; the piece from finish() follows
/// "$".
std::string pieces(const std::string& text, std::vector<std::string> stops = {}) {
  const Bytes tokenizer;
  const std::vector<int32_t> prompt{'p'};
  TextStream stream(tokenizer, prompt, std::move(stops));
  std::string out;
  for (const char c : text) {
    if (stream.stopped()) return out + "stopped";
    const std::string piece = stream.push(static_cast<unsigned char>(c));
    if (!piece.empty()) out += piece + "|";
  }
  out += "$" + stream.finish();
  return stream.stopped() ? out + "stopped" : out;
}

TEST(TextStream, HoldsBackBytesUntilTheyAreACharacter) {
  EXPECT_EQ(pieces("a\xC3\xA9z"), "a|\xC3\xA9|z|$");
  EXPECT_EQ(pieces("\xF0\x9F\x98\x80!"), "\xF0\x9F\x98\x80|!|$");
}

TEST(TextStream, GivesBytesThatNeverBecomeACharacterAsReplacements) {
  EXPECT_EQ(pieces("a\xC3"), "a|$\xEF\xBF\xBD");
  EXPECT_EQ(pieces("a\xC3z"), "a|\xEF\xBF\xBDz|$");
}

/// A tokenizer that counts the tokens that it is asked to decode.
class CountedBytes final : public Tokenizer {
 public:
  int vocab_size() const override { return 256; }
  int eod() const override { return 0; }
  void encode(std::string_view, std::vector<int32_t>&) const override {}
  std::string decode(std::span<const int32_t> ids) const override {
    decoded += ids.size();
    return Bytes().decode(ids);
  }
  std::string name() const override { return "CountedBytes"; }
  std::string hash() const override { return name(); }
  mutable size_t decoded = 0;
};

TEST(TextStream, GivesBytesThatNeverBecomeACharacterInTime) {
  const CountedBytes tokenizer;
  TextStream stream(tokenizer, std::vector<int32_t>{'p'});
  std::string out;
  size_t most = 0;  // the largest number of tokens held back
  for (size_t i = 1; i <= 10'000; ++i) {
    out += stream.push(0xFF);
    most = std::max(most, i - out.size() / 3);
  }
  EXPECT_LE(most, 16u);
  EXPECT_LT(tokenizer.decoded, 10'000u * 100);
  out += stream.finish();
  EXPECT_EQ(out.size(), 3u * 10'000);
}

// A character among invalid bytes arrives as a whole wherever it is. The invalid bytes around it arrive, too.
TEST(TextStream, FindsACharacterBehindManyBadBytes) {
  const Bytes tokenizer;
  for (const std::string good : {"\xC3\xA9", "\xE3\x81\x82", "\xF0\x9F\x98\x80", "\xF0\x9F\x98", "a"})
    for (size_t before = 0; before < 40; ++before)
      for (size_t after = 0; after < 24; ++after) {
        const std::string text = std::string(before, '\xFF') + good + std::string(after, '\xF1');
        std::vector<int32_t> ids;
        tokenizer.encode(text, ids);
        TextStream stream(tokenizer, std::vector<int32_t>{'p'});
        std::string out;
        for (const int32_t id : ids) out += stream.push(id);
        ASSERT_EQ(out + stream.finish(), tokenizer.decode(ids))
            << before << " " << quote(good) << " " << after;
      }
}

TEST(TextStream, EndsBeforeAStopStringThatCrossesTokens) {
  EXPECT_EQ(pieces("ab\n\nUser: x", {"\n\nUser"}), "a|b|stopped");
  EXPECT_EQ(pieces("abc", {"a"}), "stopped");
}

TEST(TextStream, GivesWhatOnlyBeganAsAStopString) {
  EXPECT_EQ(pieces("a\n\nb", {"\n\nUser"}), "a|\n\nb|$");
  EXPECT_EQ(pieces("aab", {"ab"}), "a|$stopped");
  EXPECT_EQ(pieces("a\n", {"\n\n"}), "a|$\n");
}

TEST(TextStream, TakesTheFirstOfSeveralStopStrings) {
  EXPECT_EQ(pieces("xabcd", {"cd", "bc"}), "x|a|stopped");
  EXPECT_EQ(pieces("xabc", {"abcdef", "c"}),
            // "ab" is held back for the longer stop string, until the next byte is not its continuation.
            "x|$abstopped");
}

// transformers: tokenizer.decode([97, 300, 98]) of a tokenizer with 256 ids is "ab".
TEST(TextStream, HasNoTextForIdsAboveTheVocabulary) {
  const Bytes tokenizer;
  const std::vector<int32_t> prompt{'p'}, ids{'a', 300, 0xC3, 256, 0xA9, 100000};
  TextStream stream(tokenizer, prompt);
  std::string out;
  for (const int32_t id : ids) out += stream.push(id);
  EXPECT_EQ(out + stream.finish(), "a\u00e9");
  EXPECT_EQ(text_of_known(tokenizer, ids), "a\u00e9");
}

TEST(TextStream, ContinuesTheTextOfThePrompt) {
  const Words tokenizer;
  const std::vector<int32_t> prompt{0, 1};
  TextStream stream(tokenizer, prompt);
  std::string out;
  for (int32_t token = 2; token < 25; ++token) out += stream.push(token);
  EXPECT_EQ(out + stream.finish(), " c d e f g h i j k l m n o p q r s t u v w x y");
}

}  // namespace
}  // namespace megalith
