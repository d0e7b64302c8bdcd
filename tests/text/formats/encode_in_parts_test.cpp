#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/text/formats/make_tokenizer.h"
#include "tests/support/files.h"

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

}  // namespace
}  // namespace megalith
