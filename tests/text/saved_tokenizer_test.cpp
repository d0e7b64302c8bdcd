#include "libcore/text/saved_tokenizer.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/base/text.h"
#include "libcore/hash/xxh64.h"
#include "libcore/io/files/file.h"
#include "libcore/text/tokenizer_files.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

class SavedTokenizer : public testing::Test {
 protected:
  SavedTokenizer() {
    fs::create_directories(dir_ / "k/tokenizer");
    write_file(dir_ / "k/tokenizer/vocab.json", kVocab);
    write_file(dir_ / "k/tokenizer/merges.txt", kMerges);
    // The format of docs/formats/checkpoint.md. The checksums come from a Python implementation of XXH64's
    // specification.
    const std::string text =
        "{\n \"format\": \"megalith-checkpoint\",\n \"files\": [\n"
        "  {\"name\": \"tokenizer/vocab.json\", \"bytes\": 16, \"xxh64\": \"VOCAB\"},\n"
        "  {\"name\": \"tokenizer/merges.txt\", \"bytes\": 4, \"xxh64\": \"MERGES\"}\n ]";
    index_ = text;
    index_.replace(index_.find("VOCAB"), 5, kVocabSum);
    index_.replace(index_.find("MERGES"), 6, kMergesSum);
    write_index(index_);
  }
  void write_index(const std::string& text) {
    write_file(dir_ / "k/index.json", text + ",\n \"checksum\": \"" + hex64(xxh64(text)) + "\"\n}");
  }
  std::string said(const std::string& path) const {
    try {
      check_saved_tokenizer(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      return error.what();
    }
    return "";
  }

  const std::string kVocab = "{\"a\": 0, \"b\": 1}", kMerges = "a b\n";
  const std::string kVocabSum = "edb92453273fa20f", kMergesSum = "8e23e953b2b1de82";
  test::TempDir dir_;
  std::string index_;
};

TEST_F(SavedTokenizer, IsTheOneThatWasSavedHoweverItIsNamed) {
  fs::create_directory_symlink("k", dir_ / "link");
  fs::create_directory_symlink("k/tokenizer", dir_ / "inner");
  fs::create_symlink("k/tokenizer/vocab.json", dir_ / "file.json");
  fs::create_directories(dir_ / "k/out");
  for (const char* const name :
       {"k/tokenizer", "k/tokenizer/", "k/tokenizer/.", "k/tokenizer/vocab.json", "k/tokenizer/merges.txt",
        "link/tokenizer", "inner", "inner/vocab.json", "file.json", "k/out/../tokenizer/vocab.json"}) {
    write_file(dir_ / "k/tokenizer/vocab.json", kVocab);
    EXPECT_EQ(said(dir_ / name), "") << name;
    for (const char* const text : {"{\"b\": 0, \"a\": 1}", "{\"a\": 0, \"b\": 1}\n", ""}) {
      write_file(dir_ / "k/tokenizer/vocab.json", text);
      EXPECT_NE(said(dir_ / name).find("k/tokenizer/vocab.json: does not match its checksum"),
                std::string::npos)
          << name << ": " << said(dir_ / name);
    }
  }
}

TEST_F(SavedTokenizer, IsNotAFileOfElsewhereThatALinkNames) {
  write_file(dir_ / "other.json", "{\"b\": 0, \"a\": 1}");
  fs::remove(dir_ / "k/tokenizer/vocab.json");
  fs::create_symlink("../../other.json", dir_ / "k/tokenizer/vocab.json");
  for (const char* const name : {"k/tokenizer", "k/tokenizer/vocab.json"})
    EXPECT_NE(said(dir_ / name).find("does not match its checksum"), std::string::npos) << name;
}

TEST_F(SavedTokenizer, HasNoOtherFiles) {
  write_file(dir_ / "k/tokenizer/README", "no tokenizer's file");
  EXPECT_EQ(said(dir_ / "k/tokenizer"), "");
  for (const char* const name : tokenizer_file_names()) {
    if (file_exists(dir_ / concat("k/tokenizer/", name))) continue;
    write_file(dir_ / concat("k/tokenizer/", name), "{}");
    EXPECT_NE(said(dir_ / "k/tokenizer").find(concat(name, ": the checkpoint was saved without this file")),
              std::string::npos);
    fs::remove(dir_ / concat("k/tokenizer/", name));
  }
  EXPECT_EQ(said(dir_ / "k/tokenizer"), "");
}

TEST_F(SavedTokenizer, IsFoundByAnIndexThatIsWhole) {
  const std::string whole = read_file(dir_ / "k/index.json");
  for (size_t at = whole.find("\"files\""); at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    write_file(dir_ / "k/index.json", bad);
    EXPECT_NE(said(dir_ / "k/tokenizer").find("k/index.json: "), std::string::npos) << at << '\n' << bad;
  }
  const auto expect = [&](const std::string& from, const std::string& to, const std::string& words) {
    std::string text = index_;
    text.replace(text.find(from), from.size(), to);
    write_index(text);
    EXPECT_NE(said(dir_ / "k/tokenizer").find("k/index.json: " + words), std::string::npos)
        << said(dir_ / "k/tokenizer");
  };
  expect("\"files\"", "\"fires\"", "the whole has no key \"files\"");
  expect("16", "1.5", "files[0].bytes is not an integer");
  expect("16", "-16", "files[0].bytes is -16");
  expect("tokenizer/v", "../../v", "files[0].name is \"../../vocab.json\"");
  expect(kVocabSum, "x", "files[0].xxh64 is \"x\", wanted 16 hexadecimal digits");
}

TEST_F(SavedTokenizer, IsNotLookedForElsewhere) {
  write_file(dir_ / "k/tokenizer/vocab.json", "{}");
  write_file(dir_ / "k/index.json", "{\"pages\": [}");  // the index of another program
  EXPECT_EQ(said(dir_ / "k/tokenizer"), "");
  fs::remove(dir_ / "k/index.json");
  EXPECT_EQ(said(dir_ / "k/tokenizer"), "");
  EXPECT_EQ(said(dir_ / "none/vocab.json"), "");
  EXPECT_EQ(said("/dev/null"), "");
}

}  // namespace
}  // namespace megalith
