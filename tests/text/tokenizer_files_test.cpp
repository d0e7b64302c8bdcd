#include "libcore/text/tokenizer_files.h"

#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "libcore/base/error.h"
#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGpt2 = "GPT2BPETokenizer";
constexpr const char* kHuggingFace = "HuggingFaceTokenizer";
constexpr const char* kLlama2 = "Llama2Tokenizer";
constexpr const char* kGptPieces = "GPTSentencePieceTokenizer";
constexpr const char* kTikToken = "TikTokenizer";
const std::string kVocab = R"({"!": 0, "\"": 1, "\u0120a": 2})", kMerges = "#version: 0.2\n\xC4\xA0 a\n",
                  kRanks = "IQ== 0\nIg== 1\n",
                  kNoise = std::string(
                      "\x7F"
                      "ELF\x02\x01\x01",
                      7);

/// The contents of a file in the table below, chosen by its name.
std::string contents_of(const std::string& name) {
  if (name.ends_with("vocab.json")) return kVocab;
  if (name.ends_with("merges.txt")) return kMerges;
  if (name.ends_with("tokenizer.json")) return R"({"version": "1.0"})";
  if (name == "tekken.json") return R"({"config": {}})";
  if (name.ends_with("tiktoken") || name == "tiktoken.model") return kRanks;
  if (name == "noise") return kNoise;
  return read_file(test::test_data("text/goldens/pieces.model"));
}

using Find = std::function<std::optional<TokenizerFiles>(const std::string&, const std::string&)>;

/// What `find` returns for a folder: the type and the names of the files in the folder (".": the folder
/// itself), "none", or the error message.
std::string answer(const Find& find, const fs::path& folder, const std::string& type) {
  try {
    const auto found = find(folder.string(), type);
    if (!found) return "none";
    std::string text = found->type;
    for (const std::string& path : {found->vocab, found->merges, found->model})
      if (!path.empty()) text += " " + fs::path(path).lexically_relative(folder).string();
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

struct Folder {
  std::vector<const char*> files;
  const char* type;        // requested type
  std::string found;       // the answer of find_tokenizer()
  std::string recognized;  // the answer of recognize_tokenizer(); empty: as `found`
};

TEST(TokenizerFiles, AreKnownByWhatTheFolderHolds) {
  const std::string gpt2 = std::string(kGpt2) + " vocab.json merges.txt",
                    whole = std::string(kHuggingFace) + " .";
  const std::string pieces = std::string(kLlama2) + " tokenizer.model",
                    other = std::string(kGptPieces) + " tokenizer.model";
  const std::string nothing = ": holds no tokenizer; looked for tokenizer.json, vocab.json with merges.txt";
  const std::string half = ": is not there; GPT-2's tokenizer has two files, vocab.json and merges.txt";
  const std::vector<Folder> folders = {
      {{}, "", "none", nothing},
      {{"vocab.json"}, "", "none", "merges.txt" + half},
      {{"merges.txt"}, "", "none", "vocab.json" + half},
      {{"vocab.json", "merges.txt"}, "", gpt2, ""},
      {{"tokenizer.json"}, "", whole, ""},
      {{"tokenizer.json"}, kLlama2, whole, ""},
      // As in transformers, tokenizer.json comes first: no other file says how texts are split (Qwen2's).
      {{"vocab.json", "merges.txt", "tokenizer.json"}, "", whole, ""},
      {{"vocab.json", "merges.txt", "tokenizer.json"}, kHuggingFace, whole, ""},
      {{"vocab.json", "merges.txt", "tokenizer.json"}, kGpt2, gpt2, ""},
      {{"tokenizer.model"}, "", pieces, ""},
      {{"tokenizer.model"}, kGptPieces, other, ""},
      {{"tokenizer.model", "vocab.json"}, "", pieces, ""},
      {{"tokenizer.model", "vocab.json", "merges.txt"}, "", gpt2, ""},
      {{"tokenizer.model", "tokenizer.json"}, "", whole, ""},
      {{"tokenizer.model", "tokenizer.json"}, kLlama2, pieces, ""},
      {{"tokenizer.model", "tokenizer.json"}, kGptPieces, other, ""},
      {{"tokenizer.model", "vocab.json", "merges.txt", "tokenizer.json"}, "", whole, ""},
      {{"tokenizer.model", "vocab.json", "merges.txt", "tokenizer.json"}, kGpt2, gpt2, ""},
      {{"tokenizer.model", "vocab.json", "merges.txt", "tokenizer.json"}, kLlama2, pieces, ""},
      {{"spiece.model"}, "", "Llama2Tokenizer spiece.model", ""},
      {{"sentencepiece.bpe.model"}, "", "Llama2Tokenizer sentencepiece.bpe.model", ""},
      {{"tiktoken.model"}, "", "TikTokenizer tiktoken.model", ""},
      {{"tekken.json"}, "", "TikTokenizer tekken.json", ""},
      {{"tekken.json", "tokenizer.json"}, "", whole, ""},
      {{"tiktoken.model", "tokenizer.json"}, kTikToken, "TikTokenizer tiktoken.model", ""},
      // The file names in DLC's guide, those of tiktoken's downloads, and a checkpoint's folder.
      {{"gpt2-vocab.json", "gpt2-merges.txt"},
       "",
       "none",
       "GPT2BPETokenizer gpt2-vocab.json gpt2-merges.txt"},
      {{"gpt2-vocab.json", "gpt2-merges.txt", "other-vocab.json"}, "", "none", nothing},
      {{"cl100k_base.tiktoken"}, "", "none", "TikTokenizer cl100k_base.tiktoken"},
      {{"tokenizer/tokenizer.json"}, "", "none", "HuggingFaceTokenizer tokenizer"},
      {{"tokenizer/vocab.json", "tokenizer/merges.txt"},
       "",
       "none",
       "GPT2BPETokenizer tokenizer/vocab.json tokenizer/merges.txt"},
  };
  for (const auto& [files, type, found, recognized] : folders) {
    const test::TempDir dir;
    std::string where = std::string("asked for \"") + type + "\":";
    for (const std::string file : files) {
      make_directories(fs::path(dir / file).parent_path());
      write_file(dir / file, contents_of(file));
      where += " " + file;
    }
    EXPECT_EQ(answer(find_tokenizer, dir.path(), type), found) << where;
    const std::string said = answer(recognize_tokenizer, dir.path(), type);
    EXPECT_NE(said.find(recognized.empty() ? found : recognized), std::string::npos) << where << " " << said;
  }
}

std::string type_of(const std::string& contents) {
  const test::TempDir dir;
  write_file(dir / "a.bin", contents);
  const auto found = recognize_tokenizer(dir / "a.bin");
  EXPECT_EQ(found->model, dir / "a.bin");
  return found->type;
}

TEST(TokenizerFiles, AreKnownByContentWhateverTheirName) {
  EXPECT_EQ(type_of("{\n  \"version\": \"1.0\", \"truncation\": null}"), kHuggingFace);
  EXPECT_EQ(type_of(R"([{"rank": 0, "token_bytes": "AA==", "token_str": ""}])"), kTikToken);
  EXPECT_EQ(type_of("IQ== 0\nIg== 1\n"), kTikToken);
  EXPECT_EQ(type_of("{\n  \"config\": {\"pattern\": \"a\"}, \"vocab\": []}"), kTikToken);
  // A ModelProto: field 1, a piece of 14 bytes: field 1, "<unk>", a score and a type.
  EXPECT_EQ(type_of(std::string("\x0A\x0E\x0A\x05<unk>\x15\0\0\0\0\x18\x02", 16)), kLlama2);
  EXPECT_EQ(recognize_tokenizer(test::test_data("text/goldens/pieces.model"))->type, kLlama2);
}

TEST(TokenizerFiles, OfGpt2AreTwoAndEitherNamesBoth) {
  const test::TempDir dir;
  for (const char* prefix : {"", "gpt2-"}) {
    const std::string vocab = dir / (std::string(prefix) + "vocab.json"),
                      merges = dir / (std::string(prefix) + "merges.txt");
    write_file(vocab, kVocab);
    write_file(merges, kMerges);
    for (const std::string& path : {vocab, merges}) {
      const auto found = recognize_tokenizer(path);
      EXPECT_EQ(found->type, kGpt2);
      EXPECT_EQ(found->vocab, vocab);
      EXPECT_EQ(found->merges, merges);
      EXPECT_EQ(found->model, "");
    }
  }
}

TEST(TokenizerFiles, MayHaveOtherNamesThanTheUsual) {
  const test::TempDir dir;
  write_file(dir / "words", kVocab);
  write_file(dir / "pairs", kMerges);
  write_file(dir / "whole", "{}");
  write_file(dir / "tokenizer.json", "{}");  // not given to `gpt2`, so not part of it
  const TokenizerFolder gpt2({{"vocab.json", dir / "words"}, {"merges.txt", dir / "pairs"}});
  EXPECT_EQ(gpt2.path, dir / "words");
  EXPECT_TRUE(gpt2.has("merges.txt"));
  EXPECT_FALSE(gpt2.has("tokenizer.json"));
  EXPECT_EQ(gpt2.file("merges.txt"), dir / "pairs");
  const auto found = find_tokenizer(gpt2);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->type, kGpt2);
  EXPECT_EQ(found->vocab, dir / "words");
  EXPECT_EQ(found->merges, dir / "pairs");
  const auto whole = find_tokenizer(TokenizerFolder({{"tokenizer.json", dir / "whole"}}));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->type, kHuggingFace);
  EXPECT_EQ(whole->model, dir / "whole");
}

TEST(TokenizerFiles, SayWhatIsWanted) {
  const test::TempDir dir;
  EXPECT_EQ(recognize_tokenizer(dir / "none"), std::nullopt);
  const std::string wanted = ": is not a tokenizer file; wanted a tokenizer.json";
  for (const char* name : {"noise", "tokenizer.model"}) {
    write_file(dir / name, kNoise);
    EXPECT_NE(answer(recognize_tokenizer, dir / name, "").find(name + wanted), std::string::npos);
  }
  EXPECT_NE(answer(find_tokenizer, dir.path(), "").find("tokenizer.model" + wanted), std::string::npos);
}

// The options get a checkpoint's own tokenizer instead of the one that its run had.
TEST(TokenizerFiles, OfACheckpointTakeThePlaceOfThoseOfItsRun) {
  const auto with_own = [](const char* type, const std::string& folder) {
    Json args = Json::object();
    args.set("tokenizer_type", type);
    args.set("vocab_file", "gone.json");
    return with_own_tokenizer(args, folder);
  };
  const test::TempDir dir;
  const std::string folder = dir.path().string();
  EXPECT_EQ(with_own(kGpt2, folder)["vocab_file"].as_string(), "gone.json");
  write_file(dir / "tokenizer.json", "{}");
  EXPECT_EQ(with_own(kGpt2, folder)["vocab_file"].as_string(), "");
  EXPECT_EQ(with_own(kGpt2, folder)["tokenizer_model"].as_string(), folder);
  EXPECT_EQ(with_own("NullTokenizer", folder)["vocab_file"].as_string(), "gone.json");
  make_directories(dir / "tokenizer");
  write_file(dir / "tokenizer/tokenizer.json", "{}");
  EXPECT_EQ(with_own(kGpt2, folder)["tokenizer_model"].as_string(), folder + "/tokenizer");
}

}  // namespace
}  // namespace megalith
