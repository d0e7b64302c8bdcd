#include "libcore/train/text_stream.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"

namespace megalith {
namespace {

/// Each id is a byte.
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

/// Words, of which each but a text's first begins with a blank, as SentencePiece writes them.
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

/// The pieces that come of pushing the bytes of `text`, joined by "|"; finish()'s after "$".
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
  EXPECT_EQ(pieces("xabc", {"abcdef", "c"}), "x|$abstopped");  // the longer one may still come, then cannot
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
