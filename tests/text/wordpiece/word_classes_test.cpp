#include "libcore/text/wordpiece/word_classes.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace megalith {
namespace {

using Apart = WordCuts::Apart;

/// The words of a text in Latin-1, with bars between them.
std::string words(const WordCuts& cuts, const std::string& text) {
  const WordClasses classes(cuts);
  std::string out;
  WordClasses::Class before = 0;
  for (size_t i = 0; i < text.size(); before = classes.of(static_cast<unsigned char>(text[i++]))) {
    const auto c = classes.of(static_cast<unsigned char>(text[i]));
    if (WordClasses::is_space(c)) continue;
    if (!out.empty() && !WordClasses::joined(before, c)) out += '|';
    out += text[i];
  }
  return out;
}

TEST(WordClasses, TellWordsApart) {
  EXPECT_EQ(words({}, "a b!! 12"), "a b!! 12");
  EXPECT_EQ(words({.at_spaces = true}, " a b!!\n12"), "a|b!!|12");
  EXPECT_EQ(words({.at_spaces = true, .by_letters = true}, "a_1 b!? 12."), "a_1|b|!?|12|.");
  EXPECT_EQ(words({.punctuation = Apart::kEach}, "a!?b "), "a|!|?|b ");
  EXPECT_EQ(words({.punctuation = Apart::kRuns}, "a!?b "), "a|!?|b ");
  EXPECT_EQ(words({.digits = Apart::kEach}, "a12b"), "a|1|2|b");
  EXPECT_EQ(words({.digits = Apart::kRuns}, "a12b"), "a|12|b");
}

TEST(WordClasses, CutWhereAnyOfSeveralCuts) {
  WordCuts cuts{.at_spaces = true};
  cuts.add({.punctuation = Apart::kRuns, .digits = Apart::kEach});
  cuts.add({.punctuation = Apart::kEach, .digits = Apart::kRuns});
  EXPECT_EQ(words(cuts, "a!?b 12"), "a|!|?|b|1|2");
  cuts = {.by_letters = true};
  cuts.add({.digits = Apart::kRuns});
  EXPECT_EQ(words(cuts, "a12b!"), "a|12|b|!");
}

}  // namespace
}  // namespace megalith
