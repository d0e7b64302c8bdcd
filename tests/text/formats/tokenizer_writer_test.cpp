#include "libcore/text/formats/tokenizer_writer.h"

#include <filesystem>

#include "libcore/io/files/file.h"
#include "libcore/text/bpe/train/training_corpus.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

TrainedBpe train_on_corpus(int vocab_size) {
  const PieceCounts pieces = count_pretokens(
      {.files = {test::test_data("text/data/corpus.jsonl")}, .json_keys = {"text"}, .workers = 2});
  return train_bpe(pieces, vocab_size, {"<|endoftext|>"});
}

TEST(WriteTokenizer, WritesTheBytesThatHuggingFaceWrites) {
  const test::TempDir dir;
  write_tokenizer(dir / "out", train_on_corpus(700));
  for (const char* name : {"vocab.json", "merges.txt", "tokenizer.json"})
    EXPECT_EQ(read_file(dir / (std::string("out/") + name)), read_file(test::trained(name))) << name;
}

TEST(WriteTokenizer, TellsTransformersWhatTheTokensAreFor) {
  const test::TempDir dir;
  write_tokenizer(dir / "out", train_on_corpus(300));
  const Json config = Json::load(dir / "out/tokenizer_config.json");
  EXPECT_EQ(config["tokenizer_class"], Json("GPT2Tokenizer"));
  EXPECT_EQ(config["eos_token"], Json("<|endoftext|>"));
  EXPECT_EQ(config["added_tokens_decoder"]["0"]["content"], Json("<|endoftext|>"));
  EXPECT_EQ(Json::load(dir / "out/special_tokens_map.json")["bos_token"], Json("<|endoftext|>"));
  const auto tokenizer =
      make_tokenizer({.type = "HuggingFaceTokenizer", .vocab = {}, .merges = {}, .model = dir / "out"});
  EXPECT_EQ(tokenizer->vocab_size(), 300);
  EXPECT_EQ(tokenizer->eod(), 0);
}

// There are so many special tokens that searching all of them for each would take minutes.
TEST(WriteTokenizer, KnowsTheIdsOfManySpecialTokens) {
  constexpr int kMany = 300000, kOthers = 256;
  TrainedBpe many;
  for (int i = 0; i < kOthers; ++i) many.tokens.push_back("t" + std::to_string(i));
  for (int i = 0; i < kMany; ++i) {
    many.tokens.push_back("<special " + std::to_string(i) + ">");
    many.special_tokens.push_back(many.tokens.back());
  }
  const auto texts = tokenizer_texts(many);
  const Json added = Json::parse(texts.at("tokenizer.json"), "tokenizer.json")["added_tokens"];
  const Json config = Json::parse(texts.at("tokenizer_config.json"), "tokenizer_config.json");
  const auto& decoder = config["added_tokens_decoder"].as_object();
  ASSERT_EQ(added.as_array().size(), size_t{kMany});
  ASSERT_EQ(decoder.size(), size_t{kMany});
  for (size_t i = 0; i < decoder.size(); ++i) {
    const std::string text = "<special " + std::to_string(i) + ">";
    ASSERT_EQ(added.as_array()[i]["content"].as_string(), text);
    ASSERT_EQ(added.as_array()[i]["id"].as_int(), static_cast<int64_t>(i) + kOthers);
    ASSERT_EQ(decoder[i].first, std::to_string(i + kOthers));
    ASSERT_EQ(decoder[i].second["content"].as_string(), text);
  }
}

TEST(WriteTokenizer, ReplacesATokenizerButNoOtherFolder) {
  const test::TempDir dir;
  write_tokenizer(dir / "out", train_on_corpus(300));
  write_tokenizer(dir / "out", train_on_corpus(310));
  EXPECT_EQ(Json::load(dir / "out/vocab.json").as_object().size(), 310u);
  write_file(dir / "out/thesis.tex", "years of work");
  test::expect_error(ErrorKind::kUsage, {"thesis.tex"},
                     [&] { write_tokenizer(dir / "out", train_on_corpus(300)); });
  EXPECT_EQ(read_file(dir / "out/thesis.tex"), "years of work");
  test::expect_error(ErrorKind::kUsage, {"is a file"},
                     [&] { write_tokenizer(dir / "out/thesis.tex", train_on_corpus(300)); });
}

}  // namespace
}  // namespace megalith
