#include "libcore/config/tokenizer_config.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

const std::string kVocab = R"({"!": 0, "\"": 1, "\u0120a": 2})", kMerges = "#version: 0.2\n\xC4\xA0 a\n";

TokenizerConfig finished(const std::string& model, const std::string& type = {}) {
  TokenizerConfig config;
  config.model = model;
  config.type = type;
  config.finish();
  return config;
}

TEST(TokenizerConfig, TakesTypeAndFilesOfAFolder) {
  const test::TempDir dir;
  make_directories(dir / "hub/models--org--tiny/refs");
  make_directories(dir / "hub/models--org--tiny/snapshots/c0");
  write_file(dir / "hub/models--org--tiny/refs/main", "c0\n");
  for (const char* where : {"", "hub/models--org--tiny/snapshots/c0"}) {
    write_file(dir / where + "/vocab.json", kVocab);
    write_file(dir / where + "/merges.txt", kMerges);
  }
  const test::Variable hub("HF_HUB_CACHE", dir / "hub");
  for (const char* type : {"", "GPT2BPETokenizer", "HuggingFaceTokenizer"}) {
    EXPECT_EQ(finished(dir / "", type).type, "GPT2BPETokenizer") << type;
    EXPECT_EQ(fs::path(finished("org/tiny", type).vocab),
              fs::path(dir / "hub/models--org--tiny/snapshots/c0/vocab.json"));
  }
  EXPECT_EQ(finished("org/none").type, "HuggingFaceTokenizer") << "its reader says that it is not there";
  EXPECT_EQ(finished("org/none").model, "org/none");
  Problems problems;
  make_directories(dir / "empty");
  finished(dir / "empty").validate(problems);
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("--tokenizer-model " + (dir / "empty") + ": holds no tokenizer"),
              std::string::npos)
        << error.what();
  }
}

// The files of the folder suit several types; --tokenizer-type selects one of them.
TEST(TokenizerConfig, LeavesAFolderToTheTypeThatIsGiven) {
  const test::TempDir dir;
  fs::copy_file(test::test_data("text/goldens/pieces.model"), dir / "tokenizer.model");
  write_file(dir / "vocab.json", kVocab);
  write_file(dir / "merges.txt", kMerges);
  write_file(dir / "tokenizer.json", R"({"pre_tokenizer": {"type": "Sequence"}})");
  const std::string folder = dir.path().string();
  EXPECT_EQ(finished(folder).type, "HuggingFaceTokenizer");
  EXPECT_EQ(finished(folder).model, folder);
  const TokenizerConfig gpt2 = finished(folder, "GPT2BPETokenizer");
  EXPECT_EQ(gpt2.type, "GPT2BPETokenizer");
  EXPECT_EQ(gpt2.vocab, dir / "vocab.json");
  EXPECT_EQ(gpt2.merges, dir / "merges.txt");
  EXPECT_EQ(gpt2.model, "");
  for (const char* type : {"Llama2Tokenizer", "GPTSentencePieceTokenizer"}) {
    EXPECT_EQ(finished(folder, type).type, type);
    EXPECT_EQ(finished(folder, type).model, dir / "tokenizer.model");
  }
}

}  // namespace
}  // namespace megalith
