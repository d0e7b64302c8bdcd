#include "libcore/text/formats/make_tokenizer.h"

#include <functional>
#include <random>
#include <set>
#include <thread>

#include "libcore/base/utf8.h"
#include "libcore/io/files/file.h"
#include "libcore/text/formats/null_tokenizer.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

using test::encode;
using test::expect_error;
using test::trained;
using test::trained_gpt2;

std::unique_ptr<Tokenizer> trained_hf(const std::string& model = trained("tokenizer.json")) {
  return make_tokenizer({.type = "HuggingFaceTokenizer", .vocab = {}, .merges = {}, .model = model});
}

void expect_golden_encodings(const Tokenizer& tokenizer) {
  const Json golden = Json::load(test::test_data("text/goldens/encodings.json"));
  ASSERT_GT(golden.as_array().size(), 250u);
  for (const Json& entry : golden.as_array()) {
    const std::string& text = entry.as_array()[0].as_string();
    const std::vector<int32_t> ids = encode(tokenizer, text);
    EXPECT_EQ(ids, test::ids_of(entry.as_array()[1])) << quote(text);
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST(Gpt2BpeTokenizer, EncodesAsHuggingFace) {
  const auto tokenizer = trained_gpt2();
  EXPECT_EQ(tokenizer->vocab_size(), 700);
  EXPECT_EQ(tokenizer->eod(), 0);
  EXPECT_EQ(tokenizer->name(), "GPT2BPETokenizer");
  expect_golden_encodings(*tokenizer);
}

TEST(HuggingFaceTokenizer, EncodesAsHuggingFaceFromAFileOrItsFolder) {
  const auto tokenizer = trained_hf();
  EXPECT_EQ(tokenizer->vocab_size(), 700);
  EXPECT_EQ(tokenizer->eod(), 0);
  EXPECT_EQ(tokenizer->name(), "HuggingFaceTokenizer");
  expect_golden_encodings(*tokenizer);
  EXPECT_EQ(encode(*trained_hf(trained("")), "harbour"), encode(*tokenizer, "harbour"));
}

TEST(EodToken, EndsADocumentInPlaceOfWhatTheFilesSay) {
  const auto gpt2 = [](const std::string& eod) {
    return make_tokenizer({.type = "GPT2BPETokenizer",
                           .vocab = trained("vocab.json"),
                           .merges = trained("merges.txt"),
                           .model = {},
                           .eod = eod});
  };
  const auto hf = [](const std::string& eod) {
    return make_tokenizer({.type = "HuggingFaceTokenizer",
                           .vocab = {},
                           .merges = {},
                           .model = trained("tokenizer.json"),
                           .eod = eod});
  };
  const int bang = encode(*gpt2(""), "!").at(0);
  EXPECT_EQ(gpt2("!")->eod(), bang);
  EXPECT_EQ(hf("!")->eod(), bang);
  EXPECT_NE(hf("!")->hash(), hf("")->hash());
  for (const auto& make : {std::function<std::unique_ptr<Tokenizer>(const std::string&)>(gpt2), {hf}})
    expect_error(ErrorKind::kData, {"no token \"<end>\", which --eod-token names"}, [&] { make("<end>"); });
  for (const char* type : {"NullTokenizer", "TikTokenizer", "Llama2Tokenizer"})
    expect_error(ErrorKind::kUsage, {"--eod-token cannot be given with --tokenizer-type", type}, [&] {
      make_tokenizer({.type = type, .vocab = {}, .merges = {}, .model = "m", .vocab_size = 9, .eod = "!"});
    });
}

TEST(MakeTokenizer, SaysThatThereIsNone) {
  expect_error(ErrorKind::kUsage, {"no tokenizer is given; give --tokenizer-model"},
               [&] { make_tokenizer({}); });
  expect_error(
      ErrorKind::kNoInput, {"org/none: there is no such file or folder", "`hf download org/none`"}, [&] {
        make_tokenizer({.type = "HuggingFaceTokenizer", .vocab = {}, .merges = {}, .model = "org/none"});
      });
}

TEST(ByteLevelTokenizer, DecodesAsHuggingFace) {
  const auto tokenizer = trained_gpt2();
  const Json golden = Json::load(test::test_data("text/goldens/decodings.json"));
  for (const Json& entry : golden.as_array())
    EXPECT_EQ(tokenizer->decode(test::ids_of(entry.as_array()[0])), entry.as_array()[1].as_string())
        << entry.dump();
}

TEST(ByteLevelTokenizer, RefusesToDecodeUnknownIds) {
  const auto tokenizer = trained_gpt2();
  for (const int32_t id : {-1, 700, INT32_MAX, INT32_MIN})
    expect_error(ErrorKind::kData, {"token id " + std::to_string(id), "0 to 699"}, [&] {
      tokenizer->decode(std::vector<int32_t>{5, id});
    });
}

TEST(ByteLevelTokenizer, AppendsToTheIds) {
  const auto tokenizer = trained_gpt2();
  std::vector<int32_t> ids = {7};
  tokenizer->encode("x", ids);
  tokenizer->encode("", ids);
  EXPECT_EQ(ids.size(), 2u);
  EXPECT_EQ(ids[0], 7);
}

std::string random_text(std::mt19937& random) {
  constexpr uint32_t kFirsts[] = {0x20,   0x41,   0x61,   0xA0,   0x300,   0x660,   0x900,
                                  0x2000, 0x3040, 0x4E00, 0xFE00, 0x1F600, 0x10FF00};
  std::string text;
  for (size_t n = random() % 60; n > 0; --n)
    append_utf8(text, kFirsts[random() % std::size(kFirsts)] + random() % 32);
  return text;
}

TEST(ByteLevelTokenizer, DecodesWhatItEncoded) {
  const auto tokenizer = trained_gpt2();
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const std::string text = random_text(random);
    ASSERT_EQ(tokenizer->decode(encode(*tokenizer, text)), text);
  }
}

TEST(ByteLevelTokenizer, EncodesFromSeveralThreads) {
  const auto tokenizer = trained_gpt2();
  const std::string text = read_file(test::test_data("text/data/corpus.jsonl"));
  const std::vector<int32_t> wanted = encode(*tokenizer, text);
  std::vector<std::vector<int32_t>> found(4);
  std::vector<std::thread> threads;
  for (auto& ids : found)
    threads.emplace_back([&] {
      for (int round = 0; round < 20; ++round) ids = encode(*tokenizer, text);
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& ids : found) EXPECT_EQ(ids, wanted);
}

TEST(NullTokenizer, ReadsAndWritesIds) {
  const auto tokenizer =
      make_tokenizer({.type = "NullTokenizer", .vocab = {}, .merges = {}, .model = {}, .vocab_size = 100});
  EXPECT_EQ(tokenizer->vocab_size(), 101);
  EXPECT_EQ(tokenizer->eod(), 100);
  EXPECT_EQ(encode(*tokenizer, "5 0 100"), (std::vector<int32_t>{5, 0, 100}));
  EXPECT_EQ(tokenizer->decode(std::vector<int32_t>{5, 0, 100}), "5 0 100");
  for (const char* text : {"", "5  6", "x", "-1", "101", "1.5", "99999999999999999999"})
    expect_error(ErrorKind::kData, {"NullTokenizer", "0 to 100"}, [&] { encode(*tokenizer, text); });
  expect_error(ErrorKind::kData, {"101"}, [&] { tokenizer->decode(std::vector<int32_t>{101}); });
}

// Megatron's NullTokenizer of --vocab-size 32000 has 32001 ids, too: its eod is the last.
TEST(NullTokenizer, SaysWhereItsLastIdComesFrom) {
  const auto tokenizer =
      make_tokenizer({.type = "NullTokenizer", .vocab = {}, .merges = {}, .model = {}, .vocab_size = 32000});
  EXPECT_EQ(tokenizer->vocab_size(), 32001);
  EXPECT_EQ(
      null_vocabulary_note(*tokenizer),
      "NullTokenizer: 32000 ids by --vocab-size and, as in Megatron, id 32000 for the end of a document: "
      "32001 in all");
  EXPECT_EQ(null_vocabulary_note(*trained_hf()), "");
}

TEST(SentencePieceTokenizer, EncodesAndDecodesAsTheLibraryInPython) {
  for (const char* type : {"GPTSentencePieceTokenizer", "Llama2Tokenizer"}) {
    const auto tokenizer = make_tokenizer(
        {.type = type, .vocab = {}, .merges = {}, .model = test::test_data("text/goldens/pieces.model")});
    EXPECT_EQ(tokenizer->name(), type);
    EXPECT_EQ(tokenizer->vocab_size(), 800);
    EXPECT_EQ(tokenizer->eod(), 2);
    const Json golden = Json::load(test::test_data("text/goldens/pieces.json"));
    for (const Json& entry : golden.as_array()) {
      const std::vector<int32_t> ids = encode(*tokenizer, entry.as_array()[0].as_string());
      EXPECT_EQ(ids, test::ids_of(entry.as_array()[1])) << entry.dump();
      EXPECT_EQ(tokenizer->decode(ids), entry.as_array()[2].as_string());
    }
    expect_error(ErrorKind::kData, {"token id 800"}, [&] { tokenizer->decode(std::vector<int32_t>{800}); });
  }
}

TEST(TokenizerHash, IsOneForTheFormsOfAVocabulary) {
  const std::string hash = trained_gpt2()->hash();
  EXPECT_EQ(hash.size(), 64u);
  EXPECT_EQ(trained_hf()->hash(), hash);
  EXPECT_EQ(trained_hf(trained(""))->hash(), hash);
  const auto sentencepiece = [](const char* type) {
    return make_tokenizer(
        {.type = type, .vocab = {}, .merges = {}, .model = test::test_data("text/goldens/pieces.model")});
  };
  EXPECT_EQ(sentencepiece("Llama2Tokenizer")->hash(), sentencepiece("GPTSentencePieceTokenizer")->hash());
}

TEST(TokenizerHash, DiffersWithWhatDecidesTheIds) {
  const test::TempDir dir;
  std::set<std::string> hashes = {trained_hf()->hash()};
  const auto add = [&](const std::string& from, const std::string& to) {
    std::string text = read_file(trained("tokenizer.json"));
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    test::write_quickly(dir / "tokenizer.json", text.replace(at, from.size(), to));
    EXPECT_TRUE(hashes.insert(trained_hf(dir / "tokenizer.json")->hash()).second) << to;
  };
  add("\"ignore_merges\": false", "\"ignore_merges\": true");
  add("\"normalizer\": null", "\"normalizer\": {\"type\": \"NFC\"}");
  add("\"rstrip\": false", "\"rstrip\": true");
  const Json root = Json::load(trained("tokenizer.json"));
  Json digits = root;
  digits.set("pre_tokenizer", Json::parse("{\"type\": \"Digits\", \"individual_digits\": true}", "test"));
  test::write_quickly(dir / "tokenizer.json", digits.dump());
  EXPECT_TRUE(hashes.insert(trained_hf(dir / "tokenizer.json")->hash()).second);
  Json swapped = root;
  Json& merges = swapped.set("model", root["model"]).set("merges", root["model"]["merges"]);
  std::swap(merges.as_array()[3], merges.as_array()[4]);
  test::write_quickly(dir / "tokenizer.json", swapped.dump());
  EXPECT_TRUE(hashes.insert(trained_hf(dir / "tokenizer.json")->hash()).second);
  write_file(dir / "tokenizer_config.json", "{\"eos_token\": \"a\"}");
  EXPECT_TRUE(hashes.insert(trained_hf(dir / "tokenizer.json")->hash()).second);
  for (const int size : {10, 11})
    hashes.insert(
        make_tokenizer({.type = "NullTokenizer", .vocab = {}, .merges = {}, .model = {}, .vocab_size = size})
            ->hash());
  EXPECT_EQ(hashes.size(), 9u);
}

TEST(SentencePieceTokenizer, RefusesWhatIsNoModel) {
  expect_error(ErrorKind::kData, {"vocab.json", "SentencePiece"}, [] {
    make_tokenizer({.type = "Llama2Tokenizer", .vocab = {}, .merges = {}, .model = trained("vocab.json")});
  });
}

TEST(SentencePieceTokenizer, IsSafeToReadWhenDamaged) {
  const test::TempDir dir;
  test::damage(read_file(test::test_data("text/goldens/pieces.model")), [&](const std::string& bad) {
    test::write_quickly(dir / "bad.model", bad);
    const auto tokenizer =
        make_tokenizer({.type = "Llama2Tokenizer", .vocab = {}, .merges = {}, .model = dir / "bad.model"});
    encode(*tokenizer, "The harbour's books.");
  });
}

TEST(MakeTokenizer, NamesWhatIsMissing) {
  const auto make = [](TokenizerFiles files) { return [files] { make_tokenizer(files); }; };
  expect_error(ErrorKind::kUsage, {"\"GPT2Tokenizer\"", "did you mean GPT2BPETokenizer"},
               make({.type = "GPT2Tokenizer", .vocab = {}, .merges = {}, .model = {}}));
  expect_error(ErrorKind::kUsage, {"\"x\"", "wanted one of GPT2BPETokenizer, "},
               make({.type = "x", .vocab = {}, .merges = {}, .model = {}}));
  expect_error(ErrorKind::kUsage, {"GPT2BPETokenizer needs --vocab-file"},
               make({.type = "GPT2BPETokenizer", .vocab = {}, .merges = "m", .model = {}}));
  expect_error(ErrorKind::kUsage, {"GPT2BPETokenizer needs --merge-file"},
               make({.type = "GPT2BPETokenizer", .vocab = "v", .merges = {}, .model = {}}));
  for (const char* type : {"HuggingFaceTokenizer", "Llama2Tokenizer", "GPTSentencePieceTokenizer"}) {
    expect_error(ErrorKind::kUsage, {type, "needs --tokenizer-model"},
                 make({.type = type, .vocab = {}, .merges = {}, .model = {}}));
    expect_error(ErrorKind::kNoInput, {"/nowhere/x"},
                 make({.type = type, .vocab = {}, .merges = {}, .model = "/nowhere/x"}));
  }
  expect_error(ErrorKind::kUsage, {"--vocab-size", "found 0"},
               make({.type = "NullTokenizer", .vocab = {}, .merges = {}, .model = {}}));
  expect_error(
      ErrorKind::kNoInput, {"/nowhere/vocab.json"},
      make({.type = "GPT2BPETokenizer", .vocab = "/nowhere/vocab.json", .merges = "m", .model = {}}));
}

}  // namespace
}  // namespace megalith
