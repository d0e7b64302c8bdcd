#include "libcore/text/gpt2_files.h"

#include <filesystem>
#include <random>
#include <set>

#include "libcore/base/file.h"
#include "libcore/base/log.h"
#include "libcore/text/byte_alphabet.h"
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

TEST_F(Gpt2Files, MayLackTheVersionLineAndTheLastLineEnd) {
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
  replace(vocab_, "\"!\":1", "\"!\":7000");
  expect_refusal({"vocab.json", "no token has id 1"});
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
  replace(vocab_, "\"!\":1", "\"QQ\":1");
  expect_refusal({"vocab.json", "no token \"!\" for byte 33"});
  vocab_ = good;
  replace(vocab_, "<|endoftext|>", "<|end|>");
  expect_refusal({"vocab.json", "<|endoftext|>"});
  vocab_ = "[1, 2]";
  expect_refusal({"vocab.json", "not an object"});
  vocab_ = good.substr(0, good.size() / 2);
  expect_refusal({"vocab.json", "not valid JSON"});
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

/// A vocabulary of 24,256 tokens, large enough to be kept.
void write_large(const test::TempDir& dir) {
  Json vocab = Json::object();
  std::string merges = "#version: 0.2\n";
  std::vector<std::string> tokens;
  const auto add = [&](const std::string& token) {
    vocab.as_object().emplace_back(token, Json(static_cast<int64_t>(tokens.size())));
    tokens.push_back(token);
  };
  for (int byte = 0; byte < 256; ++byte) add(to_byte_alphabet(std::string(1, static_cast<char>(byte))));
  std::mt19937 random(9);
  std::set<std::string> known(tokens.begin(), tokens.end());
  while (tokens.size() < 24'255) {
    const auto pick = [&] {  // letters, or a token made before
      return random() % 2 == 0 || tokens.size() == 256
                 ? std::string(1, static_cast<char>('a' + random() % 26))
                 : tokens[256 + random() % (tokens.size() - 256)];
    };
    const std::string left = pick(), right = pick();
    if (left.size() + right.size() > 20 || !known.insert(left + right).second) continue;
    add(left + right);
    merges += left + " " + right + "\n";
  }
  add("<|endoftext|>");
  write_file(dir / "vocab.json", vocab.dump());
  write_file(dir / "merges.txt", merges);
}

TEST(Gpt2Cache, GivesTheSameTokenizerAndIsMadeAgainWhenTheFilesChange) {
  const test::TempDir dir;
  write_large(dir);
  const std::string cache = dir / "cache";
  setenv("MEGALITH_CACHE_DIR", cache.c_str(), 1);
  const auto make = [&] { return make_gpt2_tokenizer(dir / "vocab.json", dir / "merges.txt"); };
  const auto kept = [&] {
    return std::distance(std::filesystem::directory_iterator(cache), std::filesystem::directory_iterator());
  };
  const ByteLevelTokenizer right(read_gpt2_files(dir / "vocab.json", dir / "merges.txt"));
  const auto expect_same = [&](const Tokenizer& tokenizer) {
    EXPECT_EQ(tokenizer.hash(), right.hash());
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
      std::string text(random() % 60, ' ');
      for (char& c : text) c = random() % 9 == 0 ? ' ' : static_cast<char>('a' + random() % 26);
      const std::vector<int32_t> ids = test::encode(tokenizer, text + "<|endoftext|>");
      ASSERT_EQ(ids, test::encode(right, text + "<|endoftext|>"));
      ASSERT_EQ(tokenizer.decode(ids), text + "<|endoftext|>");
    }
  };
  expect_same(*make());  // makes it
  ASSERT_EQ(kept(), 1);
  const std::string path = std::filesystem::directory_iterator(cache)->path().string();
  expect_same(*make());  // reads it
  const std::string good = read_file(path);

  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  write_file(path, bad);
  LogSink old = set_log_sink([](const std::string&) {});
  expect_same(*make());
  set_log_sink(std::move(old));
  EXPECT_TRUE(read_file(path) == good);  // mended

  write_file(dir / "merges.txt",
             read_file(dir / "merges.txt") + "\n");  // a blank line changes nothing but the file
  expect_same(*make());
  EXPECT_EQ(kept(), 2);
  std::filesystem::remove_all(cache);
  write_file(cache, "");  // no folder can be made
  expect_same(*make());
  unsetenv("MEGALITH_CACHE_DIR");
}

}  // namespace
}  // namespace megalith
