#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/text/formats/hf_json.h"
#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"
#include "tests/text/fixtures.h"

namespace megalith {
namespace {

TEST(Tokenizer, EncodesInPiecesWhatItEncodesAtOnce) {
  const std::string folder = test::test_data("apps/fixtures/wiki/");
  TokenizerFiles files;
  files.type = "GPT2BPETokenizer";
  files.vocab = folder + "vocab.json";
  files.merges = folder + "merges.txt";
  const std::unique_ptr<Tokenizer> gpt2 = make_tokenizer(files);
  files.type = "NullTokenizer";
  files.vocab_size = 10;
  const std::unique_ptr<Tokenizer> null = make_tokenizer(files);
  std::string text, digits;
  for (int i = 0; i < 30'000; ++i) text += "A bridge's road over the  river,<|endoftext|> naïve\n\n 中文 ";
  for (int i = 0; i < 1000; ++i) digits += i == 0 ? "1 2" : " 3 4";
  for (const auto& [tokenizer, words] :
       {std::pair(gpt2.get(), text), std::pair(null.get(), digits), std::pair(gpt2.get(), std::string())}) {
    std::vector<int32_t> whole, joined;
    size_t longest = 0;
    tokenizer->encode(words, whole);
    tokenizer->encode_in_parts(words, [&](std::span<const int32_t> ids) {
      joined.insert(joined.end(), ids.begin(), ids.end());
      longest = std::max(longest, ids.size());
    });
    EXPECT_EQ(joined, whole);
    EXPECT_LT(longest, 70'000U);
  }
}

/// Texts of all lengths, some without bytes and some too long to be encoded with others.
TEST(Tokenizer, EncodesTextsTogetherAsEachByItself) {
  std::mt19937 random(2);
  const std::vector<std::string> kinds = {"A bridge", "'s ",      "  river,", "<|endoftext|>", "naïve\n",
                                          "中文",     "12345678", "\n\n",     "\t\r",          "😀 é"};
  for (const std::string name :
       {"llama3.json", "qwen2.json", "falcon.json", "llama2.json", "texts.json", "unknown-bytes.json"}) {
    const auto tokenizer = read_hf_tokenizer(test::test_data("text/goldens/hf/" + name));
    test::TextsTogether together;
    for (int i = 0; i < 500; ++i) {
      std::string text;
      for (size_t n = random() % (random() % 40 == 0 ? 3000 : 12); n > 0; --n)
        text += kinds[random() % kinds.size()];
      std::vector<int32_t> ids;
      tokenizer->encode(text, ids);
      together.add(text, ids, tokenizer->decode(ids));
    }
    together.expect(*tokenizer, name);
  }
}

TEST(Tokenizer, NamesAnIdThatNoTextHas) {
  for (const std::string name : {"llama3.json", "llama2.json"}) {
    const auto tokenizer = read_hf_tokenizer(test::test_data("text/goldens/hf/" + name));
    ByteBuffer out;
    for (const int32_t id : {tokenizer->vocab_size(), -2})
      test::expect_error(ErrorKind::kData, {concat("token id ", id, " is not in the vocabulary")}, [&] {
        tokenizer->decode_all(std::vector<int32_t>{0, Tokenizer::kTextEnd, id, Tokenizer::kTextEnd}, out);
      });
  }
}

}  // namespace
}  // namespace megalith
