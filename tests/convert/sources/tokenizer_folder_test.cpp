// Tests which files of a tokenizer are copied unchanged. Files that are derived from others are tested in
// convert/convert_test.cpp.
#include "libcore/convert/sources/tokenizer_folder.h"

#include <filesystem>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"
#include "tests/support/goldens.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;
using test::convert_golden;

template <class Body>
std::string refusal(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }
  return {};
}

constexpr int64_t kVocabulary = 300;  // number of ids of the golden model

class TokenizerFolderTest : public testing::Test {
 protected:
  TokenizerFolderTest() {
    for (const char* const name : {"tokenizer.json", "vocab.json", "merges.txt"})
      fs::copy_file(convert_golden("gpt2/") + name, dir_ / name);
  }
  std::string refused() const {
    return refusal([&] { tokenizer_files_of(dir_.path().string(), kVocabulary); });
  }
  // Replaces `from` by `to` in tokenizer.json, and expects an error whose message has the path and `words`.
  void expect_refusal(const std::string& from, const std::string& to, const std::string& words) const {
    const std::string path = dir_ / "tokenizer.json", good = read_file(path);
    const size_t at = good.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write_file(path, std::string(good).replace(at, from.size(), to));
    EXPECT_NE(refused().find(path + ": " + words), std::string::npos) << to << ": " << refused();
    write_file(path, good);
  }
  test::TempDir dir_;
};

TEST_F(TokenizerFolderTest, RefusesFilesThatSayOtherThanTokenizerJson) {
  EXPECT_EQ(refused(), "");
  std::mt19937 random(5);
  for (const char* const name : {"vocab.json", "merges.txt"}) {
    const std::string good = read_file(dir_ / name);
    int same = 0;
    for (int turn = 0; turn < 200; ++turn) {
      std::string bad = good;
      const size_t at = random() % bad.size();
      if (turn % 4 == 0)
        bad.resize(at);
      else
        bad[at] = static_cast<char>(bad[at] ^ (1 << random() % 7));
      write_file(dir_ / name, bad);
      if (const std::string said = refused(); said.empty())
        ++same;
      else
        EXPECT_NE(said.find(dir_ / name), std::string::npos) << said;
    }
    EXPECT_LT(same, 12) << name;  // whitespace, line ends and the version line may differ
    write_file(dir_ / name, good);
  }
  EXPECT_EQ(refused(), "");
}

// The same damage is refused by Hugging Face's tokenizers (0.23), except ids that are too large or shared by
// two tokens.
TEST_F(TokenizerFolderTest, RefusesDamagedTokenizerJsonWithItsMember) {
  fs::remove(dir_ / "vocab.json");
  fs::remove(dir_ / "merges.txt");
  ASSERT_EQ(refused(), "");
  expect_refusal("\"id\":0", "\"id\":1.5", "added_tokens[0].id is not an integer");
  expect_refusal("\"id\":0", "\"id\":\"0\"", "added_tokens[0].id is not an integer");
  expect_refusal("\"id\":0", "\"id\":300", "token \"<|endoftext|>\" has id 300, but the model's vocabulary");
  expect_refusal("\"id\":0", "\"id\":-1", "token \"<|endoftext|>\" has id -1");
  expect_refusal("\"id\":0", "\"ix\":0", "added_tokens[0] has no key \"id\"");
  expect_refusal("\"content\":\"<|endoftext|>\"", "\"content\":7", "added_tokens[0].content is not a string");
  expect_refusal("\"added_tokens\":[", "\"added_tokens\":5, \"x\":[", "added_tokens is not an array");
  expect_refusal("\"model\":{", "\"modem\":{", "the whole has no key \"model\"");
  expect_refusal("\"type\":\"BPE\"", "\"type\":\"BPF\"", "model.type is \"BPF\", wanted BPE");
  expect_refusal("\"vocab\":{", "\"vocab\":3, \"x\":{", "model.vocab is not an object");
  expect_refusal("\"!\":1", "\"!\":1.5", "model.vocab.! is not an integer");
  expect_refusal("\"!\":1", "\"!\":2", "tokens ");
  expect_refusal("\"merges\":[", "\"merges\":[7, ", "model.merges[0] is not an array");
  expect_refusal("\"merges\":[", "\"merges\":[[\"!\"], ", "model.merges[0] is not a pair of tokens");
  expect_refusal("\"merges\":[", "\"merges\":[\"! ~~~\", ", "merges \"~~~\", which is not in the vocabulary");
  EXPECT_EQ(refused(), "");
}

TEST_F(TokenizerFolderTest, RefusesGpt2FilesThatAreNoTokenizer) {
  fs::remove(dir_ / "tokenizer.json");
  ASSERT_EQ(refused(), "");
  const std::string vocab = read_file(dir_ / "vocab.json"), merges = read_file(dir_ / "merges.txt");
  const auto expect = [&](const char* name, const std::string& text, const std::string& words) {
    write_file(dir_ / name, text);
    EXPECT_NE(refused().find(dir_ / name), std::string::npos) << refused();
    EXPECT_NE(refused().find(words), std::string::npos) << refused();
    write_file(dir_ / name, std::string(name) == "vocab.json" ? vocab : merges);
  };
  expect("vocab.json", R"({"a": 1.5})", "vocab.json: a is not an integer");
  expect("vocab.json", R"({"a": 99999})", "\"a\" has id 99999, but the model's vocabulary ends at 299");
  // must be accepted although the tokens of the other bytes are missing
  expect("vocab.json", R"({"a": 0})", "");
  expect("vocab.json", R"({"a": 1, "b": 1})", "\"a\" and \"b\" have the same id, 1");
  expect("merges.txt", vocab, "merges.txt:1");
  expect("merges.txt", "#version: 0.2\n! never-heard\n", "merges.txt:2");
  EXPECT_EQ(refused(), "");
}

TEST_F(TokenizerFolderTest, NamesFilesByTheNamesThatTheyWereGivenBy) {
  const std::string words = dir_ / "words.txt", pairs = dir_ / "pairs.txt";
  fs::rename(dir_ / "vocab.json", words);
  fs::rename(dir_ / "merges.txt", pairs);
  const TokenizerFolder named({{"vocab.json", words}, {"merges.txt", pairs}});
  EXPECT_EQ(tokenizer_files_of(named, kVocabulary),
            (std::map<std::string, std::string>{{"vocab.json", read_file(words)},
                                                {"merges.txt", read_file(pairs)}}));
  const auto refused = [&] { return refusal([&] { tokenizer_files_of(named, kVocabulary); }); };
  write_file(pairs, "#version: 0.2\n! never-heard\n");
  EXPECT_EQ(refused().find(pairs + ":2"), 0U) << refused();
  write_file(words, R"({"a": 1.5})");
  EXPECT_EQ(refused().find(words + ": a is not an integer"), 0U) << refused();
}

TEST_F(TokenizerFolderTest, RefusesADamagedSentencePieceModel) {
  for (const char* const name : {"tokenizer.json", "vocab.json", "merges.txt"}) fs::remove(dir_ / name);
  const std::string good = read_file(test::test_data("text/goldens/pieces.model"));
  write_file(dir_ / "tokenizer.model", good);
  ASSERT_EQ(refused(), "");
  for (const size_t bytes : {size_t{0}, size_t{1}, good.size() / 2, good.size() - 1}) {
    write_file(dir_ / "tokenizer.model", good.substr(0, bytes));
    EXPECT_NE(refused().find(dir_ / "tokenizer.model"), std::string::npos) << bytes << ": " << refused();
  }
}

TEST_F(TokenizerFolderTest, RefusesSettingsThatAreNoObject) {
  for (const char* const name : {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                 "vocab.json", "tokenizer.json"})
    for (const char* const text : {"", "x", "[]", "{\"a\": 1", "\xff\xfe"}) {
      const bool had = file_exists(dir_ / name);
      const std::string before = had ? read_file(dir_ / name) : "";
      write_file(dir_ / name, text);
      EXPECT_NE(refused().find(name), std::string::npos) << name << " " << text;
      if (had)
        write_file(dir_ / name, before);
      else
        fs::remove(dir_ / name);
    }
}

TEST_F(TokenizerFolderTest, TakesNoFileFromOutsideByALink) {
  test::TempDir elsewhere;
  write_file(elsewhere / "secret", read_file(dir_ / "merges.txt"));
  fs::remove(dir_ / "merges.txt");
  fs::create_symlink(elsewhere / "secret", dir_ / "merges.txt");
  EXPECT_NE(refused().find("merges.txt: is a link to "), std::string::npos) << refused();
  fs::create_directories(elsewhere / "snapshots/one");  // as in Hugging Face's cache
  fs::create_directory(elsewhere / "blobs");
  for (const char* const name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
    fs::copy_file(convert_golden("gpt2/") + name, elsewhere / ("blobs/" + std::string(name)));
    fs::create_symlink("../../blobs/" + std::string(name),
                       elsewhere / ("snapshots/one/" + std::string(name)));
  }
  EXPECT_EQ(tokenizer_files_of(elsewhere / "snapshots/one", kVocabulary).size(), 3U);
}

TEST(ModelSource, ComparesTheTokenizerOfACheckpointWithItsChecksums) {
  const test::TempDir dir;
  const ModelSource source(convert_golden("gpt2"));
  export_checkpoint({.source = source, .tokenizer_folder = source.tokenizer_folder()}, dir / "ours");
  const std::string folder = dir / "ours/release/tokenizer";
  const auto open = [&] { return refusal([&] { const ModelSource ours(dir / "ours"); }); };
  EXPECT_EQ(open(), "");
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string path = entry.path(), good = read_file(path);
    std::string other = good;
    other.back() = other.back() == ' ' ? '\n' : ' ';
    for (const auto& [bad, words] : {std::pair{good + "\n", ": has "},
                                     {good.substr(0, good.size() - 1), ": has "},
                                     {other, ": does not match its checksum"}}) {
      write_file(path, bad);
      EXPECT_NE(open().find(path + words), std::string::npos) << open();
    }
    EXPECT_NE(refusal([&] { tokenizer_files_of(folder, kVocabulary); }).find(path), std::string::npos)
        << path;
    write_file(path, good);
  }
  EXPECT_EQ(refusal([&] { tokenizer_files_of(folder, kVocabulary); }), "");
  write_file(folder + "/added_tokens.json", "{}");
  EXPECT_NE(open().find("added_tokens.json: the checkpoint was saved without this file"), std::string::npos)
      << open();
}

}  // namespace
}  // namespace megalith
