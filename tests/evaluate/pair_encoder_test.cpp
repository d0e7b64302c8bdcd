// The windows are those of lm_eval 0.4.13's get_rolling_token_windows(…, context_len=1), written out by hand.
#include "libcore/evaluate/pair_encoder.h"

#include <gtest/gtest.h>

#include "libcore/base/error.h"

namespace megalith {
namespace {

/// A token for each byte, 1 for "<"; 99 ends a text, 98 is put before each text.
class Bytes final : public Tokenizer {
 public:
  explicit Bytes(bool before) : before_(before) {}
  int vocab_size() const override { return 256; }
  int eod() const override { return 99; }
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    if (before_) ids.push_back(kBegin);
    for (const char c : utf8) ids.push_back(c == '<' ? kBegin : static_cast<unsigned char>(c));
  }
  Around around() const override {
    return {.before = before_ ? std::span<const int32_t>(&kBegin, 1) : std::span<const int32_t>()};
  }
  std::string decode(std::span<const int32_t> ids) const override {
    std::string out;
    for (const int32_t id : ids) out += id == kBegin ? '<' : id == 99 ? '>' : static_cast<char>(id);
    return out;
  }
  std::string name() const override { return "bytes"; }
  std::string hash() const override { return "bytes"; }

  static constexpr int32_t kBegin = 1;

 private:
  bool before_;
};

using Ids = std::vector<int32_t>;

TEST(PairEncoder, ScoresWhatFollowsTheContext) {
  const Bytes tokenizer(false);
  PairEncoder encoder(tokenizer, {}, 10);
  const ScoredTokens plain = encoder.pair("AB", " C", "f");
  EXPECT_EQ(plain.tokens, (Ids{'A', 'B', ' ', 'C'}));
  EXPECT_EQ(plain.scored, 2);
  // Blanks at the context's end belong to the continuation.
  EXPECT_EQ(encoder.pair("AB \n", "C", "f").scored, 3);
  const ScoredTokens first = encoder.pair("", "AB", "f");
  EXPECT_EQ(first.tokens, (Ids{99, 'A', 'B'}));
  EXPECT_EQ(first.scored, 2);
  EXPECT_EQ(encoder.pair(" ", "A", "f").tokens, (Ids{99, ' ', 'A'}));
}

TEST(PairEncoder, PutsTheTokenThatBeginsATextBeforeIt) {
  const Bytes tokenizer(true);
  GenerationFiles files;
  files.bos_token = "<";
  PairEncoder encoder(tokenizer, files, 10);
  EXPECT_EQ(encoder.first_token(), Bytes::kBegin);
  EXPECT_EQ(encoder.pair("A", "B", "f").tokens, (Ids{1, 'A', 'B'}));
  EXPECT_EQ(encoder.pair("<A", "B", "f").tokens, (Ids{1, 'A', 'B'}));  // it is there
  EXPECT_EQ(encoder.pair("", "AB", "f").tokens, (Ids{1, 'A', 'B'}));
  const ScoredTokens there = encoder.pair("", "<AB", "f");
  EXPECT_EQ(there.tokens, (Ids{1, 'A', 'B'}));
  EXPECT_EQ(there.scored, 2);
}

TEST(PairEncoder, LeavesOutWhatExceedsThePositions) {
  const Bytes tokenizer(false);
  PairEncoder encoder(tokenizer, {}, 4);
  const ScoredTokens cut = encoder.pair("ABCDEF", "GH", "f");
  EXPECT_EQ(cut.tokens, (Ids{'D', 'E', 'F', 'G', 'H'}));  // the last one is only a target
  EXPECT_EQ(cut.scored, 2);
  EXPECT_EQ(encoder.pair("ABC", "GH", "f").tokens.size(), 5U);
  EXPECT_EQ(encoder.cut(), 1);
}

TEST(PairEncoder, RefusesContinuationsThatCannotBeScored) {
  const Bytes tokenizer(false);
  PairEncoder encoder(tokenizer, {}, 4);
  const auto refusal = [&](const char* context, const char* continuation) -> std::string {
    try {
      encoder.pair(context, continuation, "f: item 3");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal("A", ""), "f: item 3: \"\" adds no token to its context; wanted a text that does");
  EXPECT_EQ(refusal("", ""), "f: item 3: \"\" adds no token to its context; wanted a text that does");
  EXPECT_EQ(refusal("A", "BCDEF"), "f: item 3: \"BCDEF\" has 5 tokens, the model 4 positions; shorten it");
  EXPECT_EQ(refusal("A", "BCDE"), "accepted");
}

TEST(PairEncoder, CutsATextIntoWindows) {
  const Bytes tokenizer(false);
  const PairEncoder encoder(tokenizer, {}, 4);
  const auto windows = encoder.windows("ABCDEFGHIJ");
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[0].tokens, (Ids{99, 'A', 'B', 'C', 'D'}));
  EXPECT_EQ(windows[0].scored, 4);
  EXPECT_EQ(windows[1].tokens, (Ids{'D', 'E', 'F', 'G', 'H'}));
  EXPECT_EQ(windows[1].scored, 4);
  EXPECT_EQ(windows[2].tokens, (Ids{'F', 'G', 'H', 'I', 'J'}));  // the last one has more context
  EXPECT_EQ(windows[2].scored, 2);
  EXPECT_TRUE(encoder.windows("").empty());
  EXPECT_EQ(encoder.windows("A")[0].tokens, (Ids{99, 'A'}));
}

}  // namespace
}  // namespace megalith
