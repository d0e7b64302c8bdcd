// Which files of a tokenizer are taken as they are; what is made of them is tested in
// convert/convert_test.cpp.
#include "libcore/convert/sources/tokenizer_folder.h"

#include <filesystem>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/convert/sources/model_source.h"
#include "libcore/convert/targets/megalith.h"
#include "libcore/io/file.h"
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

class TokenizerFolderTest : public testing::Test {
 protected:
  TokenizerFolderTest() {
    for (const char* const name : {"tokenizer.json", "vocab.json", "merges.txt"})
      fs::copy_file(convert_golden("gpt2/") + name, dir_ / name);
  }
  std::string refused() const {
    return refusal([&] { tokenizer_files_of(dir_.path().string()); });
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
    EXPECT_LT(same, 12) << name;  // blanks, line ends and the version's line may be others
    write_file(dir_ / name, good);
  }
  EXPECT_EQ(refused(), "");
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
  fs::create_directories(elsewhere / "snapshots/one");  // Hugging Face's cache
  fs::create_directory(elsewhere / "blobs");
  for (const char* const name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
    fs::copy_file(convert_golden("gpt2/") + name, elsewhere / ("blobs/" + std::string(name)));
    fs::create_symlink("../../blobs/" + std::string(name),
                       elsewhere / ("snapshots/one/" + std::string(name)));
  }
  EXPECT_EQ(tokenizer_files_of(elsewhere / "snapshots/one").size(), 3U);
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
    write_file(path, good);
  }
  write_file(folder + "/added_tokens.json", "{}");
  EXPECT_NE(open().find("added_tokens.json: the checkpoint was saved without this file"), std::string::npos)
      << open();
}

}  // namespace
}  // namespace megalith
