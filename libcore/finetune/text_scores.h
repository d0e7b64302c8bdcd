#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// How well texts agree with the reference texts, each score from 0 to 100.
struct TextScores {
  double bleu = 0;         // over all texts together: sacrebleu's corpus_bleu() with its tokenizer 13a
  double rouge_l = 0;      // mean of rouge-score's rougeL F-measures, without stemming
  double exact_match = 0;  // share of texts equal to the reference, except for blanks at the ends
  int64_t texts = 0;
};

/// Computes TextScores from texts that are added one at a time. In texts that are not valid UTF-8, U+FFFD
/// replaces the invalid parts.
class TextScorer {
 public:
  void add(std::string_view text, std::string_view wanted);
  TextScores scores() const;

 private:
  static constexpr size_t kOrders = 4;  // maximum length of the n-grams, in words
  double bleu() const;

  std::array<int64_t, kOrders> correct_{}, total_{};  // number of n-grams of length n, at index n - 1
  int64_t words_ = 0, wanted_words_ = 0;
  double rouge_ = 0;
  int64_t exact_ = 0, texts_ = 0;
};

/// The words of a text as mteval-v13a and sacrebleu's "13a" split it. `text` is valid UTF-8.
std::vector<std::string> bleu_words(std::string_view text);
/// The words of a text as rouge-score sees them: runs of a-z and 0-9 after conversion to lower case. Text in
/// other scripts has no words. `text` is valid UTF-8.
std::vector<std::string> rouge_words(std::string_view text);

}  // namespace megalith
