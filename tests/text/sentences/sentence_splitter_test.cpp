#include "libcore/text/sentences/sentence_splitter.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libcore/io/files/file.h"
#include "libcore/json/json.h"
#include "tests/support/files.h"

namespace megalith {
namespace {

using Blanks = SentenceSplitter::Blanks;
using Sentences = std::vector<std::string>;

SentenceSplitter splitter(Blanks blanks) {
  return {read_punkt_parameters(test::test_data("text/goldens/punkt/tokenizers/punkt_tab/english")), blanks};
}

Sentences split(const SentenceSplitter& splitter, std::string_view text) {
  Sentences out;
  splitter.split(text, [&](std::string_view sentence) { out.emplace_back(sentence); });
  return out;
}

// The golden is made by tools/golden/make_sentences.py.
TEST(SentenceSplitter, SplitsAsNltkDoes) {
  const SentenceSplitter drop = splitter(Blanks::kDrop), keep = splitter(Blanks::kKeep);
  const Json golden = Json::load(test::test_data("text/goldens/punkt/sentences.json"));
  const auto sentences = [](const Json& list) {
    Sentences out;
    for (const Json& sentence : list.as_array()) out.push_back(sentence.as_string());
    return out;
  };
  EXPECT_GT(golden.as_array().size(), 380U);
  for (const Json& row : golden.as_array()) {
    const std::string& text = row.as_array()[0].as_string();
    EXPECT_EQ(split(drop, text), sentences(row.as_array()[1])) << text;
    EXPECT_EQ(split(keep, text), sentences(row.as_array()[2])) << text;
  }
}

// The expected sentences were derived by hand from the rules.
TEST(SentenceSplitter, KeepsAbbreviationsAndTakesQuotesAlong) {
  EXPECT_EQ(split(splitter(Blanks::kDrop), " Dr. Adams left (at last.)  \"Why?\" It rained.\n"),
            (Sentences{" Dr. Adams left (at last.)", "\"Why?\"", "It rained."}));
  EXPECT_EQ(split(splitter(Blanks::kKeep), "It rained.\n\n There was a bridge.\n"),
            (Sentences{"It rained.\n\n ", "There was a bridge."}));
}

TEST(SentenceSplitter, SplitsEachMillionCharactersAlone) {
  const SentenceSplitter drop = splitter(Blanks::kDrop);
  std::string text;
  for (int i = 0; i < 999'997; ++i) text += "é";
  text += ". It is so. Then";
  const size_t word = 2 * 999'997 + 1;
  std::vector<size_t> parts, whole;
  drop.split_in_parts(text, [&](std::string_view sentence) { parts.push_back(sentence.size()); });
  // The boundary of the parts cuts "It": "I", "t is so."
  EXPECT_EQ(parts, (std::vector<size_t>{word, 1, 8, 4}));
  drop.split(text, [&](std::string_view sentence) { whole.push_back(sentence.size()); });
  EXPECT_EQ(whole, (std::vector<size_t>{word, 9, 4}));
}

// Texts of words, periods and blanks that make NLTK's patterns backtrack again and again.
TEST(SentenceSplitter, NeedsLinearTime) {
  for (const Blanks blanks : {Blanks::kDrop, Blanks::kKeep}) {
    const SentenceSplitter cutter = splitter(blanks);
    for (const char* piece :
         {"a", ".", "!", "a.", "?\"", ". ", " . . ", "-", "Σ", "Σ'", "\n", "\"", "本!", "1,"}) {
      std::string text;
      while (text.size() < 3'000'000) text += piece;
      size_t bytes = 0;
      cutter.split(text, [&](std::string_view sentence) { bytes += sentence.size(); });
      EXPECT_LE(bytes, text.size()) << piece;
    }
  }
}

}  // namespace
}  // namespace megalith
