#include "libcore/config/tokenizer_model.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/config/tokenizer_config.h"
#include "libcore/io/files/file.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

const std::string kVocab = R"({"!": 0, "\"": 1, "\u0120a": 2})", kMerges = "#version: 0.2\n\xC4\xA0 a\n";

class TokenizerModelTest : public testing::Test {
 protected:
  std::string type_of(const std::string& name, const std::string& contents) {
    write_file(dir_ / name, contents);
    return recognize_tokenizer(dir_ / name)->type;
  }
  std::string refusal(const std::string& path) {
    try {
      recognize_tokenizer(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "recognised";
  }
  test::TempDir dir_;
};

TEST_F(TokenizerModelTest, IsKnownByContentWhateverItsName) {
  EXPECT_EQ(type_of("a.bin", "{\n  \"version\": \"1.0\", \"truncation\": null}"), "HuggingFaceTokenizer");
  EXPECT_EQ(type_of("b.txt", R"([{"rank": 0, "token_bytes": "AA==", "token_str": ""}])"), "TikTokenizer");
  EXPECT_EQ(type_of("c.json", "IQ== 0\nIg== 1\n"), "TikTokenizer");
  // A ModelProto: field 1, a piece of 14 bytes: field 1, "<unk>", a score and a type.
  EXPECT_EQ(type_of("d.json", std::string("\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02", 16)),
            "Llama2Tokenizer");
  EXPECT_EQ(recognize_tokenizer(test::test_data("text/goldens/pieces.model"))->type, "Llama2Tokenizer");
}

TEST_F(TokenizerModelTest, OfGpt2HasTwoFilesAndEitherNamesBoth) {
  write_file(dir_ / "vocab.json", kVocab);
  EXPECT_NE(refusal(dir_ / "vocab.json").find("merges.txt: is not there; GPT-2's tokenizer has two files"),
            std::string::npos);
  write_file(dir_ / "merges.txt", kMerges);
  for (const char* name : {"vocab.json", "merges.txt", ""}) {
    const auto found = recognize_tokenizer(dir_ / name);
    EXPECT_EQ(found->type, "GPT2BPETokenizer") << name;
    EXPECT_EQ(fs::path(found->vocab), fs::path(dir_ / "vocab.json"));
    EXPECT_EQ(fs::path(found->merges), fs::path(dir_ / "merges.txt"));
    EXPECT_EQ(found->model, "");
  }
  write_file(dir_ / "tokenizer.json", "{\"version\": \"1.0\"}");
  EXPECT_EQ(recognize_tokenizer(dir_ / "")->type, "HuggingFaceTokenizer")
      << "as transformers, the one file first";
}

// --tokenizer-type, or the type that a checkpoint was trained with, against a folder that would serve
// several.
// As DLC's guide and tiktoken's downloads are called, and as a checkpoint keeps it.
TEST_F(TokenizerModelTest, IsFoundInAFolderUnderOtherNames) {
  for (const char* folder : {"old", "ranks", "iter_0000004/tokenizer"}) make_directories(dir_ / folder);
  write_file(dir_ / "old/gpt2-vocab.json", kVocab);
  write_file(dir_ / "old/gpt2-merges.txt", kMerges);
  for (const char* path : {"old", "old/gpt2-vocab.json", "old/gpt2-merges.txt"}) {
    const auto found = recognize_tokenizer(dir_ / path);
    EXPECT_EQ(fs::path(found->vocab), fs::path(dir_ / "old/gpt2-vocab.json")) << path;
    EXPECT_EQ(fs::path(found->merges), fs::path(dir_ / "old/gpt2-merges.txt")) << path;
  }
  write_file(dir_ / "old/other-vocab.json", kVocab);
  EXPECT_NE(refusal(dir_ / "old").find("holds no tokenizer"), std::string::npos) << "which of two?";
  write_file(dir_ / "ranks/cl100k_base.tiktoken", "IQ== 0\nIg== 1\n");
  EXPECT_EQ(recognize_tokenizer(dir_ / "ranks")->type, "TikTokenizer");
  write_file(dir_ / "iter_0000004/tokenizer/tokenizer.json", "{\"version\": \"1.0\"}");
  EXPECT_EQ(recognize_tokenizer(dir_ / "iter_0000004")->type, "HuggingFaceTokenizer");
}

TEST_F(TokenizerModelTest, OfSeveralInAFolderIsTheOneOfTheType) {
  write_file(dir_ / "vocab.json", kVocab);
  EXPECT_EQ(find_tokenizer(dir_.path().string()), std::nullopt) << "half of GPT-2's is none";
  fs::copy_file(test::test_data("text/goldens/pieces.model"), dir_ / "tokenizer.model");
  EXPECT_EQ(find_tokenizer(dir_.path().string())->type, "Llama2Tokenizer");
  write_file(dir_ / "merges.txt", kMerges);
  EXPECT_EQ(find_tokenizer(dir_.path().string())->type, "GPT2BPETokenizer");
  // Qwen2's: byte-level, but with a pattern of its own, which the two files do not hold.
  write_file(dir_ / "tokenizer.json", R"({"pre_tokenizer": {"type": "Sequence"}})");
  struct Case {
    const char *type, *found, *file;
  };
  for (const auto& [type, found, file] :
       {Case{"", "HuggingFaceTokenizer", ""},
        {"HuggingFaceTokenizer", "HuggingFaceTokenizer", ""},
        {"GPT2BPETokenizer", "GPT2BPETokenizer", nullptr},
        {"Llama2Tokenizer", "Llama2Tokenizer", "tokenizer.model"},
        {"GPTSentencePieceTokenizer", "GPTSentencePieceTokenizer", "tokenizer.model"}}) {
    const auto model = recognize_tokenizer(dir_.path().string(), type);
    EXPECT_EQ(model->type, found) << type;
    const fs::path folder = dir_.path();
    EXPECT_EQ(model->model, file == nullptr ? ""
                            : *file == '\0' ? folder.string()
                                            : (folder / file).string())
        << type;
    TokenizerConfig config;
    config.type = type;
    config.model = dir_.path().string();
    config.finish();
    EXPECT_EQ(config.type, found) << type;
    EXPECT_EQ(config.model, model->model) << type;
    EXPECT_EQ(config.vocab, model->vocab) << type;
  }
}

TEST_F(TokenizerModelTest, SaysWhatItWants) {
  EXPECT_EQ(recognize_tokenizer(dir_ / "none"), std::nullopt);
  write_file(dir_ / "noise", std::string("\x7F"
                                         "ELF\x02\x01\x01",
                                         7));
  EXPECT_NE(refusal(dir_ / "noise").find("noise: is no tokenizer's file; wanted a tokenizer.json"),
            std::string::npos);
  make_directories(dir_ / "empty");
  EXPECT_NE(refusal(dir_ / "empty").find("holds no tokenizer; looked for tokenizer.json"), std::string::npos);
}

TokenizerConfig finished(const std::string& model, const std::string& type = {}) {
  TokenizerConfig config;
  config.model = model;
  config.type = type;
  config.finish();
  return config;
}

TEST_F(TokenizerModelTest, GivesTheTypeAndTheFilesToTheOptions) {
  make_directories(dir_ / "hub/models--org--tiny/refs");
  make_directories(dir_ / "hub/models--org--tiny/snapshots/c0");
  write_file(dir_ / "hub/models--org--tiny/refs/main", "c0\n");
  for (const char* where : {"", "hub/models--org--tiny/snapshots/c0"}) {
    write_file(dir_ / where + "/vocab.json", kVocab);
    write_file(dir_ / where + "/merges.txt", kMerges);
  }
  const test::Variable hub("HF_HUB_CACHE", dir_ / "hub");
  for (const char* type : {"", "GPT2BPETokenizer", "HuggingFaceTokenizer"}) {
    EXPECT_EQ(finished(dir_ / "", type).type, "GPT2BPETokenizer") << type;
    EXPECT_EQ(fs::path(finished("org/tiny", type).vocab),
              fs::path(dir_ / "hub/models--org--tiny/snapshots/c0/vocab.json"));
  }
  EXPECT_EQ(finished("org/none").type, "HuggingFaceTokenizer") << "its reader says that it is not there";
  EXPECT_EQ(finished("org/none").model, "org/none");
  Problems problems;
  make_directories(dir_ / "empty");
  finished(dir_ / "empty").validate(problems);
  try {
    problems.throw_if_any();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("--tokenizer-model " + (dir_ / "empty") + ": holds no tokenizer"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace megalith
