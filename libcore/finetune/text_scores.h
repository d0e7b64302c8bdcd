#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// How well texts agree with the reference texts, each score from 0 to 100.
struct TextScores {
  double bleu = 0;         // of all texts together: sacrebleu's corpus_bleu() with its tokenizer 13a
  double rouge_l = 0;      // mean of rouge-score's rougeL F-measures, without stemming
  double exact_match = 0;  // share of texts equal to the reference, except for blanks at the ends
  int64_t texts = 0;
};

/// Accumulates what TextScores are computed from, one text at a time. In texts that are not valid UTF-8,
/// U+FFFD replaces the invalid parts.
class TextScorer {
 public:
  void add(std::string_view text, std::string_view wanted);
  TextScores scores() const;

 private:
  static constexpr size_t kOrders = 4;  // n-grams of up to this many words
  double bleu() const;

  std::array<int64_t, kOrders> correct_{}, total_{};  // numbers of n-grams, at index n - 1
  int64_t words_ = 0, wanted_words_ = 0;
  double rouge_ = 0;
  int64_t exact_ = 0, texts_ = 0;
};

/// Words as mteval-v13a and sacrebleu's "13a" split them. `text` is valid UTF-8.
std::vector<std::string> bleu_words(std::string_view text);
/// Lower-case runs of a-z and 0-9, the words of rouge-score: other scripts have none. `text` is valid UTF-8.
std::vector<std::string> rouge_words(std::string_view text);

}  // namespace megalith
