// Tests that the datasets equal, byte for byte, those of Megatron-LM's own tools/preprocess_data.py
// (tools/golden/make_megatron_preprocess.py).
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/files.h"

namespace megalith::test {
namespace {

namespace fs = std::filesystem;

class MegatronPreprocess : public testing::Test {
 protected:
  MegatronPreprocess() {
    for (const char* name : {"a.jsonl", "b.jsonl"}) fs::copy_file(golden(name), dir_.path() / name);
  }
  static std::string golden(const std::string& name) { return test_data("apps/fixtures/megatron/" + name); }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path())) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  /// Runs the program with the options of the case `name` of that script. Expects its datasets and no other
  /// files.
  void expect_same(const std::string& name, const std::string& options,
                   const std::vector<std::string>& datasets) {
    SCOPED_TRACE(name);
    const CommandResult run = run_command(
        concat("cd ", dir_.path().string(), " && NLTK_DATA=", test_data("text/goldens/punkt"), " ",
               app("preprocess"), " --tokenizer-type HuggingFaceTokenizer --tokenizer-model ",
               test_data("text/goldens/trained"), " --output-prefix ", name, " ", options));
    ASSERT_EQ(run.code, 0) << run.all();
    std::vector<std::string> expected = {"a.jsonl", "b.jsonl"};
    for (const std::string& dataset : datasets) {
      const std::string prefix = name + "_" + dataset;
      for (const char* end : {".bin", ".idx"})
        EXPECT_EQ(read_file(dir_ / (prefix + end)), read_file(golden(prefix + end))) << prefix << end;
      for (const char* end : {".bin", ".idx", ".json"}) expected.push_back(prefix + end);
    }
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(files(), expected);
    for (const std::string& file : expected)
      if (file.starts_with(name)) fs::remove(dir_.path() / file);
  }
  TempDir dir_;
};

TEST_F(MegatronPreprocess, IsEqualledForDocuments) {
  for (const char* workers : {" --workers 1", " --workers 3"})
    expect_same("plain", std::string("--input a.jsonl --json-keys text title --append-eod") + workers,
                {"text_document", "title_document"});
}

TEST_F(MegatronPreprocess, IsEqualledForPartitionsThatKeepTheOrder) {
  expect_same(
      "blocks",
      "--input '[ab].jsonl' --json-keys text title --partitions 3 --keep-sequential-samples --append-eod "
      "--workers 3",
      {"text_document", "title_document"});
  expect_same("spare", "--input b.jsonl --partitions 7 --keep-sequential-samples --workers 7",
              {"text_document"});
}

TEST_F(MegatronPreprocess, IsEqualledForSentences) {
  expect_same("cut", "--input a.jsonl --split-sentences --append-eod --workers 2", {"text_sentence"});
  expect_same("kept", "--input a.jsonl --split-sentences --keep-newlines --lang english --workers 2",
              {"text_sentence"});
  for (const char* more : {"", " --resume", " --workers 1 --chunk-size 1"})
    expect_same("both",
                std::string("--input '[ab].jsonl' --json-keys text title --split-sentences --partitions 2 "
                            "--keep-sequential-samples --append-eod") +
                    more,
                {"text_sentence", "title_sentence"});
}

}  // namespace
}  // namespace megalith::test
