#include "libcore/finetune/examples.h"

#include <csignal>
#include <memory>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/streams/stop_signal.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

using Ids = std::vector<int32_t>;

/// A tokenizer for texts of numbers, which are the ids themselves. The end token is the last id, 99.
PlainTokenizer numbers() {
  return PlainTokenizer(std::make_unique<NullTokenizer>(99));
}

Record record(const std::string& question, const std::string& answer) {
  return {.segments = {{question, false}, {answer, true}}, .where = "x:1"};
}

std::string flags(const Examples::Example& example) {
  std::string out;
  for (const uint8_t counts : example.counts) out += counts ? '1' : '0';
  return out;
}

// The tokenizers put <s> before a text. PlainTokenizer::encode() leaves it out, and before() returns it.
TEST(PlainTokenizer, KnowsWhatSurroundsATextAndLeavesItOut) {
  for (const char* name : {"llama2", "llama3", "metaspace-always"}) {
    TokenizerFiles files{.type = "HuggingFaceTokenizer",
                         .vocab = {},
                         .merges = {},
                         .model = test_data(concat("text/goldens/hf/", name, ".json"))};
    const PlainTokenizer plain(make_tokenizer(files), 7);
    EXPECT_EQ(plain.eos(), 7);
    EXPECT_EQ(plain.before().size(), 1U) << name;
    files.hf_special_tokens = false;
    const std::unique_ptr<Tokenizer> alone = make_tokenizer(files);
    for (const char* text : {"", "a", " two words", "more\nlines\n"}) {
      Ids wanted, whole;
      alone->encode(text, wanted);
      EXPECT_EQ(plain.encode(text), wanted) << name << text;
      plain.tokenizer().encode(text, whole);
      wanted.insert(wanted.begin(), plain.before().begin(), plain.before().end());
      EXPECT_EQ(whole, wanted) << name << text;
    }
  }
}

TEST(Examples, EndAnAnswerAndCountItAlone) {
  Examples examples;
  examples.add(record("1 2 3", "4 5"), numbers(), {});
  ASSERT_EQ(examples.size(), 1);
  EXPECT_EQ(Ids(examples[0].ids.begin(), examples[0].ids.end()), (Ids{1, 2, 3, 4, 5, 99}));
  EXPECT_EQ(flags(examples[0]), "000111");
  EXPECT_EQ(examples[0].rows(), 5);
  EXPECT_EQ(examples[0].counted(), 3);
}

TEST(Examples, DropTheBeginningOfAPromptAndTheEndOfAnAnswer) {
  Examples examples;
  examples.add(record("1 2 3", "4 5 6"), numbers(), {.source = 2, .target = 3});
  EXPECT_EQ(Ids(examples[0].ids.begin(), examples[0].ids.end()),
            (Ids{2, 3, 4, 5, 6}));  // no end token, because the answer was truncated
  EXPECT_EQ(examples.report().truncated_prompts, 1);
  EXPECT_EQ(examples.report().truncated_answers, 1);
}

TEST(Examples, LeaveOutARecordWithoutAnAnswersToken) {
  Examples examples;
  examples.add(record("1 2 3", "4"), numbers(), {.whole = 3});
  examples.add(record("1", "2"), numbers(), {.whole = 3});
  ASSERT_EQ(examples.size(), 1);
  EXPECT_EQ(Ids(examples[0].ids.begin(), examples[0].ids.end()), (Ids{1, 2, 99}));
  EXPECT_EQ(examples.report().without_answer, 1);
  EXPECT_EQ(
      report_line("x", examples.report()),
      "x: 1 records, 3 to 3 tokens (mean 3.0), 66.7 % of them learned; 1 answers and 0 prompts truncated; 1 "
      "left out: no token of the answer fits");
}

TEST(Examples, ARenderedConversationIsUsedAsItIs) {
  Examples examples;
  Record chat = record("1", "2");
  chat.segments.push_back({"3", false});
  chat.segments.push_back({"4", true});
  chat.rendered = true;
  examples.add(chat, numbers(), {});
  EXPECT_EQ(Ids(examples[0].ids.begin(), examples[0].ids.end()), (Ids{1, 2, 3, 4}));
  EXPECT_EQ(flags(examples[0]), "0101");
}

TEST(Examples, OfAPairAreTakenTogetherOrNotAtAll) {
  Examples examples;
  examples.add(RecordPair{record("1", "2"), record("1", "3 4")}, numbers(), {.whole = 3});
  examples.add(RecordPair{record("1 2 3", "4"), record("1", "5")}, numbers(), {.whole = 3});
  ASSERT_EQ(examples.size(), 2);
  EXPECT_EQ(Ids(examples[0].ids.begin(), examples[0].ids.end()), (Ids{1, 2, 99}));
  EXPECT_EQ(Ids(examples[1].ids.begin(), examples[1].ids.end()), (Ids{1, 3, 4}));
  EXPECT_EQ(examples.report().without_answer, 1);
}

TEST(Examples, OfOtherRecordsHaveAnotherHash) {
  const auto hash = [](const std::string& question, const std::string& answer) {
    Examples examples;
    examples.add(record("7", "8"), numbers(), {});
    examples.add(record(question, answer), numbers(), {});
    return examples.hash();
  };
  EXPECT_EQ(hash("1 2", "3"), hash("1 2", "3"));
  EXPECT_NE(hash("1 2", "3"), hash("1 2", "4"));  // another token
  EXPECT_NE(hash("1 2", "3"), hash("2 1", "3"));
  EXPECT_NE(hash("1 2", "3"), hash("1", "2 3"));  // the same tokens, but others are learned
}

/// Encodes numbers. A signal reaches the program while the third text is encoded.
class InterruptedTokenizer final : public NullTokenizer {
 public:
  InterruptedTokenizer(int size, int& encoded) : NullTokenizer(size), encoded_(encoded) {}
  void encode(std::string_view utf8, std::vector<int32_t>& ids) const override {
    if (++encoded_ == 3) std::raise(SIGTERM);
    NullTokenizer::encode(utf8, ids);
  }

 private:
  int& encoded_;
};

TEST(Examples, AreNotMadeAfterASignal) {
  const StopSignal stop;
  int encoded = 0;
  const PlainTokenizer tokenizer(std::make_unique<InterruptedTokenizer>(99, encoded));
  encoded = 0;  // the constructor may have tried the tokenizer
  Examples examples;
  examples.add(record("1", "2"), tokenizer, {});
  examples.add(record("1", "2"), tokenizer, {});  // its question is the third text
  EXPECT_THROW(examples.add(record("1", "2"), tokenizer, {}), Stopped);
  EXPECT_EQ(encoded, 4);
}

TEST(Question, IsARecordWithoutItsLastAnswer) {
  Record chat = record("1 2", "3");
  chat.segments.push_back({"4 5", false});
  chat.segments.push_back({"6", true});
  chat.rendered = true;
  chat.answer = "6";
  const Question question = question_of(chat, numbers(), {});
  EXPECT_EQ(question.ids, (Ids{1, 2, 3, 4, 5}));
  EXPECT_EQ(question.answer, "6");
  EXPECT_EQ(question_of(record("1 2 3", "4"), numbers(), {.source = 2}).ids, (Ids{2, 3}));
  EXPECT_EQ(question_of(chat, numbers(), {.whole = 3}).ids, (Ids{3, 4, 5}));
  EXPECT_TRUE(question_of(chat, numbers(), {.whole = 3}).cut);
  EXPECT_FALSE(question_of(chat, numbers(), {.whole = 5}).cut);
}

}  // namespace
}  // namespace megalith::test
