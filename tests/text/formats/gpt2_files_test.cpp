#include "libcore/text/formats/gpt2_files.h"

#include <algorithm>

#include "libcore/io/files/file.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

using test::expect_error;

/// Copies of the trained files that a test may damage.
class Gpt2Files : public testing::Test {
 protected:
  Gpt2Files()
      : vocab_(read_file(test::trained("vocab.json"))), merges_(read_file(test::trained("merges.txt"))) {}

  static void replace(std::string& text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }

  ByteLevelModel read() {
    test::write_quickly(dir_ / "vocab.json", vocab_);
    test::write_quickly(dir_ / "merges.txt", merges_);
    return read_gpt2_files(dir_ / "vocab.json", dir_ / "merges.txt");
  }
  void expect_refusal(const std::vector<std::string>& parts) {
    expect_error(ErrorKind::kData, parts, [&] { read(); });
  }

  test::TempDir dir_;
  std::string vocab_, merges_;
};

TEST_F(Gpt2Files, AreReadWhole) {
  const ByteLevelModel model = read();
  EXPECT_EQ(model.tokens.size(), 700u);
  EXPECT_EQ(model.merges.size(), 700u - 257u);
  EXPECT_EQ(model.tokens[0], "<|endoftext|>");
  EXPECT_EQ(model.eod, 0);
}

TEST_F(Gpt2Files, MayHaveWindowsLineEndsAndBlankLinesAtTheEnd) {
  const size_t merges = read().merges.size();
  std::string windows;
  for (char c : merges_) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  merges_ = windows + "\r\n\n";
  EXPECT_EQ(read().merges.size(), merges);
}

TEST_F(Gpt2Files, MayLeaveOutTheVersionLineAndTheLastLineEnd) {
  const size_t merges = read().merges.size();
  replace(merges_, "#version: 0.2\n", "");
  merges_.pop_back();
  EXPECT_EQ(read().merges.size(), merges);
}

TEST_F(Gpt2Files, NameTheLineOfABadMerge) {
  replace(merges_, "#version: 0.2\n", "#version: 0.2\na b c\n");
  expect_refusal({"merges.txt:2", "\"a b c\"", "two tokens"});
  replace(merges_, "a b c\n", "abc\n");
  expect_refusal({"merges.txt:2", "\"abc\""});
  replace(merges_, "abc\n", "\n");
  expect_refusal({"merges.txt:2", "\"\""});
  replace(merges_, "\n\n", "\nQQ a\n");
  expect_refusal({"merges.txt:2", "left token \"QQ\"", "vocab.json"});
  replace(merges_, "QQ a\n", "a QQ\n");
  expect_refusal({"merges.txt:2", "right token \"QQ\""});
  replace(merges_, "a QQ\n", "Z Q\n");
  expect_refusal({"merges.txt:2", "joined token \"ZQ\""});
}

TEST_F(Gpt2Files, NameTheTokenOfABadVocabulary) {
  const std::string good = vocab_;
  replace(vocab_, "\"!\":1", "\"!\":2");
  expect_refusal({"vocab.json", "id 2", "\"!\"", "\"\\\"\""});
  vocab_ = good;
  replace(vocab_, "\"!\":1", "\"!\":2097152");
  expect_refusal({"vocab.json", "\"!\"", "2097152", "2097151"});
  vocab_ = good;
  replace(vocab_, "\"!\":1", "\"!\":-1");
  expect_refusal({"\"!\"", "-1"});
  vocab_ = good;
  replace(vocab_, "\"!\":1", "\"!\":99999999999");
  expect_refusal({"\"!\"", "99999999999"});
  vocab_ = good;
  replace(vocab_, "\"!\":1", "\"!\":\"1\"");
  expect_refusal({"\"!\"", "an integer"});
  vocab_ = good;
  replace(vocab_, "\"!\":1", "\"\\\"\":1");
  expect_refusal({"vocab.json", "twice"});
  vocab_ = good;
  replace(vocab_, "<|endoftext|>", "<|end|>");
  expect_refusal({"vocab.json", "<|endoftext|>"});
  vocab_ = "[1, 2]";
  expect_refusal({"vocab.json", "not an object"});
  vocab_ = good.substr(0, good.size() / 2);
  expect_refusal({"vocab.json", "not valid JSON"});
}

TEST_F(Gpt2Files, MayLeaveIdsOut) {
  const std::vector<int32_t> ids = test::encode(ByteLevelTokenizer(read()), "Oh! They're books!");
  replace(vocab_, "\"!\":1", "\"!\":7000");
  const ByteLevelTokenizer tokenizer(read());
  std::vector<int32_t> wanted = ids;
  std::replace(wanted.begin(), wanted.end(), 1, 7000);
  ASSERT_NE(wanted, ids);
  EXPECT_EQ(test::encode(tokenizer, "Oh! They're books!"), wanted);
  EXPECT_EQ(tokenizer.decode(wanted), "Oh! They're books!");
  EXPECT_EQ(tokenizer.vocab_size(), 7001);  // every id is below this size
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{1}), "");
}

TEST_F(Gpt2Files, TakeMoreSpecialTokens) {
  read();
  const ByteLevelTokenizer tokenizer(
      read_gpt2_files(dir_ / "vocab.json", dir_ / "merges.txt", {.special = {"<|user|>", "!", "<|user|>!"}}));
  EXPECT_EQ(tokenizer.vocab_size(), 702);
  EXPECT_EQ(test::encode(tokenizer, "<|user|>!!<|user|><|endoftext|>"),
            (std::vector<int32_t>{701, 1, 700, 0}));
  EXPECT_EQ(tokenizer.decode(std::vector<int32_t>{701, 1, 700, 0}), "<|user|>!!<|user|><|endoftext|>");
}

TEST_F(Gpt2Files, AreSafeToReadWhenDamaged) {
  const auto use = [&] {
    const ByteLevelTokenizer tokenizer(read());
    EXPECT_FALSE(test::encode(tokenizer, "The harbour's books.").empty());
  };
  const std::string vocab = vocab_, merges = merges_;
  test::damage(vocab, [&](const std::string& bad) { vocab_ = bad, use(); });
  vocab_ = vocab;
  test::damage(merges, [&](const std::string& bad) { merges_ = bad, use(); });
}

TEST_F(Gpt2Files, SayWhichOneIsNotThere) {
  expect_error(ErrorKind::kNoInput, {"vocab.json"},
               [&] { read_gpt2_files(dir_ / "vocab.json", dir_ / "merges.txt"); });
  expect_error(ErrorKind::kNoInput, {"merges.txt"},
               [&] { read_gpt2_files(test::trained("vocab.json"), dir_ / "merges.txt"); });
}

}  // namespace
}  // namespace megalith
