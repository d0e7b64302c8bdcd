#include "libcore/text/unigram/unigram_tokenizer.h"

#include <map>

#include "libcore/hash/sha256.h"
#include "libcore/text/formats/hf_json.h"
#include "libcore/text/formats/sentencepiece_files.h"
#include "tests/text/fixtures.h"
#include "tests/text/read_twice.h"
#include "tests/text/unigram/naive_unigram.h"

namespace megalith {
namespace {

std::string golden(const std::string& name) {
  return test::test_data("text/goldens/unigram/" + name);
}

std::unique_ptr<Tokenizer> read(const std::string& path) {
  if (path.ends_with(".model")) return read_sentencepiece_tokenizer("Llama2Tokenizer", path);
  return read_hf_tokenizer(path);
}

std::string line_of(const std::vector<int32_t>& ids) {
  std::string line;
  for (const int32_t id : ids) line += concat(line.empty() ? "" : " ", id);
  return line + "\n";
}

/// Made by release 0.2.3 of sentencepiece and 0.23 of Hugging Face tokenizers (tools/golden/make_unigram.py).
TEST(UnigramTokenizer, GivesTheIdsOfTheLibraries) {
  constexpr size_t kBlock = 100;
  const Json texts = Json::load(golden("texts.json")), files = Json::load(golden("ids.json"));
  ASSERT_GE(texts.as_array().size() * files.as_array().size(), 40'000u);
  for (const Json& file : files.as_array()) {
    const std::string& name = file.as_array()[0].as_string();
    const auto tokenizer = read(golden(name));
    std::string lines;
    for (size_t i = 0; i < texts.as_array().size(); ++i) {
      const std::string& text = texts.as_array()[i].as_string();
      const std::vector<int32_t> ids = test::encode(*tokenizer, text);
      lines += line_of(ids);
      IdBuffer buffer(sizeof(uint16_t));
      tokenizer->encode_to(text, buffer);
      ASSERT_EQ(buffer.ids(), ids);
      if ((i + 1) % kBlock > 0) continue;
      EXPECT_EQ(sha256_hex(lines), file.as_array()[1].as_array()[i / kBlock].as_string())
          << name << ", texts up to " << i;
      lines.clear();
    }
  }
}

/// The ids of a text by the naive cut and the rules for unknown characters.
template <class Sum>
std::vector<int32_t> naive_ids(const UnigramModel& model, const std::string& text) {
  std::map<std::string, int32_t> ids_of;
  for (size_t id = 0; id < model.tokens.size(); ++id)
    if (!model.tokens[id].empty()) ids_of[model.tokens[id]] = static_cast<int32_t>(id);
  std::vector<int32_t> ids;
  bool after_unknown = false;
  const auto add_unknown = [&](const std::string& piece) {
    for (const char byte : piece)
      if (model.rules.bytes[0] >= 0) ids.push_back(model.rules.bytes[static_cast<uint8_t>(byte)]);
    if (model.rules.bytes[0] < 0 && !after_unknown) ids.push_back(model.rules.unknown);
  };
  const auto add_pretoken = [&](const std::string& pretoken) {
    after_unknown = false;
    for (const std::string& piece : test::naive_cut<Sum>(model, pretoken)) {
      const auto found = ids_of.find(piece);
      if (found == ids_of.end())
        add_unknown(piece);
      else
        ids.push_back(found->second);
      after_unknown = found == ids_of.end();
    }
  };
  size_t begin = 0;
  for (size_t at = 1; at < text.size(); ++at)
    if (!model.rules.mark.empty() && text.compare(at, model.rules.mark.size(), model.rules.mark) == 0) {
      add_pretoken(text.substr(begin, at - begin));
      begin = at;
    }
  add_pretoken(text.substr(begin));
  return ids;
}

template <class Sum>
void compare_with_naive(UnigramRules::Sums sums, unsigned seed) {
  std::mt19937 random(seed);
  for (int n = 0; n < 200; ++n) {
    UnigramModel model = test::random_unigram(random, sums);
    if (random() % 2 == 0)
      for (size_t byte = 0; byte < model.rules.bytes.size(); ++byte) {
        model.rules.bytes[byte] = static_cast<int32_t>(model.tokens.size());
        model.tokens.emplace_back();
        model.scores.push_back(0);
      }
    if (sums == UnigramRules::Sums::kDouble && random() % 2 == 0) model.rules.mark = " ";
    const UnigramTokenizer tokenizer(model);
    for (int i = 0; i < 50; ++i) {
      const std::string text = test::random_unigram_text(random);
      ASSERT_EQ(test::encode(tokenizer, text), naive_ids<Sum>(model, text)) << text;
    }
  }
}

TEST(UnigramTokenizer, CutsInPartsAsTheReferencesAtOnce) {
  compare_with_naive<float>(UnigramRules::Sums::kFloat, 1);
  compare_with_naive<double>(UnigramRules::Sums::kDouble, 2);
}

template <class Sum>
void compare_long_texts(UnigramRules::Sums sums) {
  std::mt19937 random(5);
  for (int n = 0; n < 2; ++n) {
    const UnigramModel model = test::random_unigram(random, sums);
    const UnigramTokenizer tokenizer(model);
    const std::string text = test::text_with_giants(test::kUnigramLetters, random);
    const std::vector<int32_t> wanted = naive_ids<Sum>(model, text);
    EXPECT_TRUE(test::encode(tokenizer, text) == wanted);
    std::vector<int32_t> joined;
    const auto stream = tokenizer.stream({.text = {}, .ids = [&](std::span<const int32_t> ids) {
                                            joined.insert(joined.end(), ids.begin(), ids.end());
                                          }});
    stream->add("");
    stream->add(text);
    stream->finish();
    EXPECT_TRUE(joined == wanted);
  }
}

TEST(UnigramTokenizer, CutsALongTextAsItArrivesAsTheReferencesAtOnce) {
  compare_long_texts<float>(UnigramRules::Sums::kFloat);
  compare_long_texts<double>(UnigramRules::Sums::kDouble);
}

TEST(UnigramTokenizer, LooksUpARunOfUnknownCharactersIfToldTo) {
  UnigramModel model;
  // "xy" is worse than two unknown characters.
  model.tokens = {"<u>", "a", "xy", "<0x78>", "<0x79>"};
  model.scores = {0, -1, -90, -1, -1};
  model.rules.unknown_score = -20;
  model.rules.looks_up_runs = true;
  const auto ids = [&](const std::string& text) { return test::encode(UnigramTokenizer(model), text); };
  EXPECT_EQ(ids("axya"), (std::vector<int32_t>{1, 2, 1}));
  EXPECT_EQ(ids("axyxa"), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(ids("a<u>"), (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(ids("a<u>x"), (std::vector<int32_t>{1, 0}));
  model.rules.bytes['x'] = 3;
  model.rules.bytes['y'] = 4;
  EXPECT_EQ(ids("axyxa"), (std::vector<int32_t>{1, 3, 4, 3, 1}));
  EXPECT_EQ(ids("axyza"), (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(ids("axxa"), (std::vector<int32_t>{1, 3, 3, 1}));
}

TEST(UnigramTokenizer, IsTheSameFromTheKeptFile) {
  const Json texts = Json::load(golden("texts.json"));
  for (const std::string name : {"bytes.model", "user.model", "t5.json", "first.json"}) {
    // Blanks after JSON's end, or a field that protobuf ignores.
    const std::string blanks(300'000, ' ');
    const std::string padding = name.ends_with(".json") ? blanks : concat("\x82\x7d\xe0\xa7\x12", blanks);
    const auto [first, later] = test::read_twice(golden(name), padding, read);
    EXPECT_TRUE(name.ends_with(".json") || later->eod() == first->eod());
    for (size_t i = 0; i < 300; ++i) {
      const std::string& text = texts.as_array()[i].as_string();
      const std::vector<int32_t> ids = test::encode(*first, text);
      EXPECT_EQ(test::encode(*later, text), ids);
      EXPECT_EQ(later->decode(ids), first->decode(ids));
    }
  }
}

}  // namespace
}  // namespace megalith
