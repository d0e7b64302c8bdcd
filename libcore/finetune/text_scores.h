#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace megalith {

/// How texts agree with the wanted ones, each figure from 0 to 100.
struct TextScores {
  double bleu = 0;         // of all texts together: sacrebleu's corpus_bleu() with its tokenizer 13a
  double rouge_l = 0;      // mean of rouge-score's rougeL F-measures, without stemming
  double exact_match = 0;  // texts that are the wanted one, blanks at the ends aside
  int64_t texts = 0;
};

/// Adds up what TextScores are computed from, one text after the other. Texts that are no valid UTF-8 count
/// with U+FFFD for what is not.
class TextScorer {
 public:
  void add(std::string_view text, std::string_view wanted);
  TextScores scores() const;

 private:
  static constexpr size_t kOrders = 4;  // n-grams of one word up to so many
  double bleu() const;

  std::array<int64_t, kOrders> correct_{}, total_{};  // n-grams of the texts, by n - 1
  int64_t words_ = 0, wanted_words_ = 0;
  double rouge_ = 0;
  int64_t exact_ = 0, texts_ = 0;
};

/// Words as mteval-v13a and sacrebleu's "13a" cut them. `text` is valid UTF-8.
std::vector<std::string> bleu_words(std::string_view text);
/// Lower-case runs of a-z and 0-9, as rouge-score cuts words: other scripts have none. Valid UTF-8.
std::vector<std::string> rouge_words(std::string_view text);

}  // namespace megalith
