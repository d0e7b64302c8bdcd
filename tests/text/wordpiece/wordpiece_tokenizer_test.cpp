#include "libcore/text/wordpiece/wordpiece_tokenizer.h"

#include <algorithm>
#include <random>

#include "libcore/hash/sha256.h"
#include "libcore/text/formats/hf_json.h"
#include "libcore/text/unicode/unicode.h"
#include "tests/text/fixtures.h"
#include "tests/text/read_twice.h"

namespace megalith {
namespace {

std::string golden(const std::string& name) {
  return test::test_data("text/goldens/wordpiece/" + name);
}

std::vector<std::string> texts() {
  std::vector<std::string> out;
  const Json list = Json::load(golden("texts.json"));
  for (const Json& text : list.as_array()) out.push_back(text.as_string());
  return out;
}

std::string lines_of(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::string line;
  for (const int32_t id : ids) line += concat(line.empty() ? "" : " ", id);
  return line + "\n" + tokenizer.decode(ids) + "\n";
}

/// Made by Hugging Face tokenizers 0.23 (tools/golden/make_wordpiece.py).
TEST(WordPieceTokenizer, EncodesAndDecodesAsHuggingFace) {
  constexpr size_t kBlock = 100;
  const std::vector<std::string> all = texts();
  const Json files = Json::load(golden("ids.json"));
  ASSERT_GE(all.size() * files.as_array().size(), 7'000u);
  for (const Json& file : files.as_array()) {
    const std::string& name = file.as_array()[0].as_string();
    const auto tokenizer = read_hf_tokenizer(golden(name));
    std::string lines;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::vector<int32_t> ids = test::encode(*tokenizer, all[i]);
      lines += lines_of(*tokenizer, ids);
      IdBuffer buffer(sizeof(uint16_t));
      tokenizer->encode_to(all[i], buffer);
      ASSERT_EQ(buffer.ids(), ids);
      if ((i + 1) % kBlock > 0) continue;
      EXPECT_EQ(sha256_hex(lines), file.as_array()[1].as_array()[i / kBlock].as_string())
          << name << ", texts up to " << i;
      lines.clear();
    }
  }
}

WordPieceModel small_model() {
  WordPieceModel model;
  model.name = "Small";
  model.tokens = {"[UNK]", "a", "ab", "##b", "##ab", "\u65e5", ".", "##.", "1"};
  model.rules.cuts = {.at_spaces = true, .punctuation = WordCuts::Apart::kEach};
  model.rules.longest_word = 40;
  return model;
}

TEST(WordPieceTokenizer, TakesTheLongestTokenAtEachPlace) {
  const WordPieceTokenizer tokenizer(small_model());
  const auto ids = [&](std::string_view text) { return test::encode(tokenizer, text); };
  EXPECT_EQ(ids("ababb a"), (std::vector<int32_t>{2, 4, 3, 1}));
  EXPECT_EQ(ids(" \u3000.a.\n"), (std::vector<int32_t>{6, 1, 6}));
  EXPECT_EQ(ids("ax ab"), (std::vector<int32_t>{0, 2}));  // unknown as a whole
  EXPECT_EQ(ids("##b"), (std::vector<int32_t>{0, 0, 0}));
  EXPECT_EQ(ids("a" + std::string(39, 'b')).size(), 39u);
  EXPECT_EQ(ids("a" + std::string(40, 'b')), std::vector<int32_t>{0});
  EXPECT_EQ(ids(""), std::vector<int32_t>{});
}

TEST(WordPieceTokenizer, GivesTheSameForATextThatArrivesInParts) {
  std::mt19937 random(7);
  const std::vector<std::string> kinds = {"a", "b", "ab", " ", "\u65e5", ".", "x", "1", "\u3000"};
  for (const WordCuts::Apart digits :
       {WordCuts::Apart::kNo, WordCuts::Apart::kRuns, WordCuts::Apart::kEach}) {
    WordPieceModel model = small_model();
    model.rules.cuts.digits = digits;
    const WordPieceTokenizer tokenizer(model);
    std::string text;
    while (text.size() < 300'000) {
      const std::string& kind = kinds[random() % kinds.size()];
      for (size_t n = random() % 100 == 0 ? random() % 5000 : 1 + random() % 3; n > 0; --n) text += kind;
    }
    std::vector<int32_t> joined;
    const auto stream = tokenizer.stream({.text = {}, .ids = [&](std::span<const int32_t> ids) {
                                            joined.insert(joined.end(), ids.begin(), ids.end());
                                          }});
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view part = first_characters(rest, 1 + random() % 50);
      stream->add(part);
      rest.remove_prefix(part.size());
    }
    stream->finish();
    EXPECT_TRUE(joined == test::encode(tokenizer, text));
  }
}

TEST(WordPieceTokenizer, IsTheSameFromTheKeptFile) {
  const std::vector<std::string> all = texts();
  for (const char* name : {"uncased.json", "runs.json", "whole.json"}) {
    const auto [first, later] =
        test::read_twice(golden(name), std::string(300'000, ' '),
                         [](const std::string& path) { return read_hf_tokenizer(path); });
    for (size_t i = 0; i < all.size(); i += 3) {
      const std::vector<int32_t> ids = test::encode(*first, all[i]);
      EXPECT_EQ(test::encode(*later, all[i]), ids);
      EXPECT_EQ(later->decode(ids), first->decode(ids));
    }
  }
}

TEST(WordPieceTokenizer, HasNoEndUnlessItIsNamed) {
  WordPieceModel model = small_model();
  test::expect_error(ErrorKind::kData, {"--eod-token"}, [&] { WordPieceTokenizer(model).eod(); });
  model.eod = 6;
  EXPECT_EQ(WordPieceTokenizer(model).eod(), 6);
}

}  // namespace
}  // namespace megalith
